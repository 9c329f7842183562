"""Operators that ONNX Runtime's optimizer fuses out of standard ones: a sum or product with what comes behind it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from trueport.adapters.float64.onnx.dtypes import Array
from trueport.adapters.float64.onnx.kernels import activation, matmul
from trueport.adapters.float64.onnx.kernels.attention import join_heads, split_heads
from trueport.adapters.float64.onnx.kernels.contrib import MICROSOFT
from trueport.adapters.float64.onnx.kernels.convolution import conv
from trueport.adapters.float64.onnx.kernels.pytorch import product
from trueport.adapters.float64.onnx.kernels.softmax import softmax
from trueport.adapters.float64.onnx.registry import Call, kernel

_ACTIVATIONS: dict[str, Callable[..., Array]] = {
    "": lambda x: x,
    "Relu": lambda x: np.maximum(x, 0.0),
    "Sigmoid": activation.sigmoid,
    "Tanh": np.tanh,
    "LeakyRelu": lambda x, alpha: np.where(x < 0, alpha * x, x),
    "Clip": np.clip,
    "HardSigmoid": lambda x, alpha, beta: np.clip(alpha * x + beta, 0.0, 1.0),
}
"""What may come behind a convolution or product, with its parameters in order."""
_PARAMETERS = {"LeakyRelu": 1, "Clip": 2, "HardSigmoid": 2}


def _knows_activation(call: Call) -> bool:
    name = call.attributes.get("activation", "")
    return name in _ACTIVATIONS and len(_parameters(call)) == _PARAMETERS.get(name, 0)


def _parameters(call: Call) -> list[float]:
    given = call.attributes.get("activation_params")
    if given is not None:
        return list(given)
    names = ("activation_alpha", "activation_beta", "activation_gamma")
    return [call.attributes[n] for n in names if n in call.attributes][
        : _PARAMETERS.get(call.attributes["activation"], 0)
    ]


@kernel("FusedConv", domain=MICROSOFT, supports=_knows_activation)
def fused_conv(call: Call, x: Array, w: Array, b: Array | None = None, z: Array | None = None) -> Array:
    """Returns the activation of the convolution plus z."""
    total = conv(call, x, w, b)
    return _ACTIVATIONS[call.attributes.get("activation", "")](total if z is None else total + z, *_parameters(call))


@kernel("FusedGemm", domain=MICROSOFT, supports=_knows_activation)
def fused_gemm(call: Call, a: Array, b: Array, c: Array | None = None) -> Array:
    """Returns the activation of alpha A' B' + beta C."""
    return _ACTIVATIONS[call.attributes.get("activation", "")](matmul.gemm(call, a, b, c), *_parameters(call))


@kernel("FusedMatMul", domain=MICROSOFT)
def fused_matmul(call: Call, a: Array, b: Array) -> Array:
    """Returns alpha A' B', each factor transposed if asked for, in its first axes too."""
    left, right = _transposed(call, a, "A"), _transposed(call, b, "B")
    return np.asarray(product(left, right) * call.attributes.get("alpha", 1.0))


def _transposed(call: Call, x: Array, factor: str) -> Array:
    """With `transBatch` the first axis becomes the last but one, where the matrix's rows stand."""
    if call.attributes.get(f"transBatch{factor}", 0) and x.ndim > 2:
        x = np.moveaxis(x, 0, -2)
    return np.swapaxes(x, -1, -2) if call.attributes.get(f"trans{factor}", 0) and x.ndim > 1 else x


def _has_three_factors(call: Call) -> bool:
    """Query, key and value each of rank 3, no cache, and a mask of one number for each key."""
    types = (*call.input_types, *[""] * 10)
    return bool(types[1] and types[2]) and not any(types[6:10]) and call.n_outputs == 1


@kernel("MultiHeadAttention", domain=MICROSOFT, supports=_has_three_factors)
def multi_head_attention(
    call: Call, q: Array, k: Array, v: Array, bias: Array | None = None, padding: Array | None = None,
    scores: Array | None = None,
) -> Array:  # fmt: skip
    """Returns softmax(q k^T scale + bias of the scores) v for each head; a padded key is moved far down.

    Raises:
        ValueError: the operands are packed, or the mask has another form than [batch, keys].
    """
    if any(x.ndim != 3 for x in (q, k, v)) or (padding is not None and padding.ndim != 2):
        raise ValueError("expected query, key and value of rank 3 and a mask of rank 2")
    if bias is not None:
        width = q.shape[-1]
        q, k, v = q + bias[:width], k + bias[width : 2 * width], v + bias[2 * width :]
    heads = call.attributes["num_heads"]
    q, k, v = (split_heads(x, heads) for x in (q, k, v))
    logits = product(q, np.swapaxes(k, 2, 3)) * (call.attributes.get("scale") or 1.0 / math.sqrt(q.shape[-1]))
    return join_heads(product(softmax(_masked(call, logits, padding, scores), -1), v))


def _masked(call: Call, logits: Array, padding: Array | None, scores: Array | None) -> Array:
    hidden: Any = 0.0
    fill = call.attributes.get("mask_filter_value", -10000.0)
    if padding is not None:
        hidden = np.where(padding[:, None, None, :] != 0, 0.0, fill)
    if call.attributes.get("unidirectional", 0):
        rows, columns = logits.shape[-2:]
        hidden = hidden + np.where(np.arange(columns) > np.arange(rows)[:, None] + columns - rows, fill, 0.0)
    return np.asarray(logits + hidden + (0.0 if scores is None else scores))
