"""Operators as they were before operator set 7, where they meant something else or were told it otherwise.

Broadcasting was asked for by an attribute, and aligned by another one; the second operand was the smaller.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from trueport.adapters.float64.onnx.dtypes import Array
from trueport.adapters.float64.onnx.kernels import activation, elementwise, matmul, normalization, pooling
from trueport.adapters.float64.onnx.kernels.windows import channels_first
from trueport.adapters.float64.onnx.registry import EARLY, Call, kernel


def aligned(call: Call, a: Array, b: Array) -> Array:
    """Returns the second operand in a shape that broadcasts to that of the first.

    Raises:
        ValueError: the shapes are unequal and broadcasting was not asked for, or b does not fit a there.
    """
    if not call.attributes.get("broadcast", 0):
        if a.shape != b.shape:
            raise ValueError(f"expected equal shapes without 'broadcast', got {list(a.shape)} and {list(b.shape)}")
        return b
    if b.size == 1:
        return b.reshape(())
    axis = int(call.attributes.get("axis", a.ndim - b.ndim))
    wide = b.reshape(b.shape + (1,) * max(a.ndim - axis - b.ndim, 0))
    if np.broadcast_shapes(a.shape, wide.shape) != a.shape:
        raise ValueError(
            f"expected a second operand that fits into {list(a.shape)} at axis {axis}, got {list(b.shape)}"
        )
    return wide


def _register(op_type: str, function: Any) -> None:
    def run(call: Call, a: Array, b: Array) -> Array:
        return np.asarray(function(call, a, aligned(call, a, b)))

    kernel(op_type, domain=EARLY)(run)


def _plain(function: Any) -> Any:
    def run(call: Call, a: Array, b: Array) -> Any:
        del call
        return function(a, b)

    return run


for _name, _function in {
    "Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "And": np.logical_and, "Or": np.logical_or,
    "Xor": np.logical_xor, "Equal": np.equal, "Less": np.less, "Greater": np.greater,
}.items():  # fmt: skip
    _register(_name, _plain(_function))
_register("Div", elementwise.divide)
_register("Pow", elementwise.power)


@kernel("Gemm", domain=EARLY)
def gemm(call: Call, a: Array, b: Array, c: Array | None = None) -> Array:
    """Returns alpha A' B' + beta C; C broadcasts where it is told to, always with its last axes.

    C could not be left out; a file that does so is refused by ONNX's checker, not here.
    """
    return matmul.gemm(call, a, b, c)


@kernel("PRelu", domain=EARLY)
def prelu(call: Call, x: Array, slope: Array) -> Array:
    """Returns x, below zero slope x, with one slope for all or one for each channel."""
    return activation.prelu(call, x, slope.reshape(()) if slope.size == 1 else channels_first(slope.ravel(), x.ndim))


def _is_inference(call: Call) -> bool:
    return bool(call.attributes.get("is_test", 0)) and call.n_outputs == 1 and bool(call.attributes.get("spatial", 1))


@kernel("BatchNormalization", domain=EARLY, supports=_is_inference)
def batch_normalization(call: Call, x: Array, scale: Array, bias: Array, average: Array, variance: Array) -> Any:
    """Returns x normalized by the given statistics."""
    return normalization.batch_normalization(call, x, scale, bias, average, variance)


def _has_no_padding(call: Call) -> bool:
    """Whether padding counts in a mean was not yet said."""
    return not any(call.attributes.get("pads") or ()) and call.attributes.get("auto_pad", "NOTSET") in (
        "NOTSET",
        "VALID",
    )


@kernel("AveragePool", domain=EARLY, supports=_has_no_padding)
def average_pool(call: Call, x: Array) -> Array:
    """Returns the mean of each window."""
    return pooling.average_pool(call, x)


@kernel("Dropout", domain=EARLY, selects=True, supports=lambda call: bool(call.attributes.get("is_test", 0)))
def dropout(call: Call, x: Array) -> tuple[Array, Array]:
    """Returns x as it is, and that everything is kept."""
    del call
    return x, np.ones_like(x)
