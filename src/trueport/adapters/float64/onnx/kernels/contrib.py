"""Operators that ONNX Runtime adds to the standard, as its optimizer and exporters write them into files."""

from __future__ import annotations

import numpy as np

from trueport.adapters.float64.onnx.dtypes import Array
from trueport.adapters.float64.onnx.kernels import activation, normalization, reduction
from trueport.adapters.float64.onnx.registry import Call, kernel

MICROSOFT = "com.microsoft"


@kernel("Gelu", domain=MICROSOFT)
def gelu(call: Call, x: Array) -> Array:
    """Returns GELU."""
    del call
    return activation.gelu(x)


@kernel("BiasGelu", domain=MICROSOFT)
def bias_gelu(call: Call, x: Array, bias: Array) -> Array:
    """Returns GELU of x + bias."""
    del call
    return activation.gelu(x + bias)


@kernel("FastGelu", domain=MICROSOFT)
def fast_gelu(call: Call, x: Array, bias: Array | None = None) -> Array:
    """Returns the tanh approximation of GELU of x + bias."""
    del call
    return activation.gelu_tanh(x if bias is None else x + bias)


@kernel("QuickGelu", domain=MICROSOFT)
def quick_gelu(call: Call, x: Array) -> Array:
    """Returns x sigmoid(alpha x)."""
    return x * activation.sigmoid(call.attributes.get("alpha", float(np.float32(1.702))) * x)


def _epsilon(call: Call, default: float) -> float:
    return float(call.attributes.get("epsilon", float(np.float32(default))))


@kernel("SkipLayerNormalization", domain=MICROSOFT)
def skip_layer_normalization(
    call: Call, x: Array, skip: Array, gamma: Array, beta: Array | None = None, bias: Array | None = None
) -> tuple[Array, ...]:
    """Returns the layer normalization of x + skip + bias, its statistics, and the sum."""
    total = x + skip if bias is None else x + skip + bias
    normal, mean, inverse = normalization.standardize(total, (total.ndim - 1,), _epsilon(call, 1e-12))
    result = normal * gamma
    return result if beta is None else result + beta, mean, inverse, total


def _simplified(call: Call, x: Array, scale: Array) -> tuple[Array, Array]:
    axes = tuple(range(call.attributes.get("axis", -1) % x.ndim, x.ndim))
    inverse = 1.0 / np.sqrt(reduction.mean(np.square(x), axes) + _epsilon(call, 1e-5))
    return x * inverse * scale, inverse


@kernel("SimplifiedLayerNormalization")
def simplified_layer_normalization(call: Call, x: Array, scale: Array) -> tuple[Array, ...]:
    """Returns x divided by its root mean square, and the reciprocal of that."""
    return _simplified(call, x, scale)


@kernel("SkipSimplifiedLayerNormalization", domain=MICROSOFT)
def skip_simplified_layer_normalization(
    call: Call, x: Array, skip: Array, gamma: Array, bias: Array | None = None
) -> tuple[Array | None, ...]:
    """Returns x + skip + bias divided by its root mean square, its statistics, and the sum."""
    total = x + skip if bias is None else x + skip + bias
    result, inverse = _simplified(call, total, gamma)
    return result, None, inverse, total
