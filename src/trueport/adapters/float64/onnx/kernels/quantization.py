"""Quantization: real numbers as integers with a scale and a zero point, and products of such tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from trueport.adapters.float64.onnx.dtypes import Array, held_dtype
from trueport.adapters.float64.onnx.kernels.convolution import conv
from trueport.adapters.float64.onnx.narrow import NARROW, rounded
from trueport.adapters.float64.onnx.registry import Call, kernel

_LIMITS = {
    f"{sign}int{bits}": (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if sign == "" else (0, 2**bits - 1)
    for sign in ("", "u")
    for bits in (2, 4, 8, 16)
}


def _gives_quantized(call: Call) -> bool:
    """Whether the result is of an integer type of up to 16 bits or a float type of up to 8."""
    return call.output_types[0] in _LIMITS or call.output_types[0] in NARROW


def _takes_quantized(call: Call) -> bool:
    return call.input_types[0] in _LIMITS or call.input_types[0] in NARROW or call.input_types[0] == "int32"


def _spread(call: Call, value: Array, shape: tuple[int, ...]) -> Array:
    """Returns a scale or zero point in a shape that broadcasts: for the whole tensor, along an axis, or in blocks."""
    if value.size == 1 and value.ndim <= 1:
        return value.reshape(())
    axis = int(call.attributes.get("axis", 1)) % max(len(shape), 1)
    block = int(call.attributes.get("block_size", 0) or 0)
    if block:
        return np.repeat(value, block, axis=axis)[tuple(slice(0, size) for size in shape)]
    wide = [1] * len(shape)
    wide[axis] = value.size
    return value.reshape(wide)


def _quantized(value: Array, zero: Array | float, dtype: str, *, saturate: bool = True) -> Array:
    """Returns numbers of a quantized type: integers are rounded before the zero point is added, floats behind."""
    if dtype in NARROW:
        return rounded(np.asarray(value + zero), dtype, saturate=saturate)
    # Through int32, because NumPy converts to types of less than a byte from no float type.
    return np.clip(np.rint(value) + zero, *_LIMITS[dtype]).astype(np.int32).astype(held_dtype(dtype))


@kernel("QuantizeLinear", supports=_gives_quantized)
def quantize_linear(call: Call, x: Array, scale: Array, zero_point: Array | None = None) -> Array:
    """Returns x / scale, rounded half to even, plus the zero point, within the range of the type.

    The type in which the operator is told to divide is not that of this evaluation, which divides in float64.
    """
    zero = 0.0 if zero_point is None else _spread(call, zero_point, x.shape).astype(np.float64)
    saturate = bool(call.attributes.get("saturate", 1))
    return _quantized(x / _spread(call, scale, x.shape), zero, call.output_types[0], saturate=saturate)


@kernel("DequantizeLinear", supports=_takes_quantized)
def dequantize_linear(call: Call, x: Array, scale: Array, zero_point: Array | None = None) -> Array:
    """Returns (x - zero point) * scale."""
    zero = 0.0 if zero_point is None else _spread(call, zero_point, x.shape).astype(np.float64)
    return np.asarray((x.astype(np.float64) - zero) * _spread(call, scale, x.shape))


@kernel("DynamicQuantizeLinear")
def dynamic_quantize_linear(call: Call, x: Array) -> tuple[Array, Array, Array]:
    """Returns x as uint8, with a scale and a zero point that make its range, zero included, fit."""
    del call
    low, high = min(float(x.min(initial=0.0)), 0.0), max(float(x.max(initial=0.0)), 0.0)
    scale = (high - low) / 255
    zero = float(np.clip(np.rint(-low / scale), 0, 255)) if scale else 0.0
    quantized = np.clip(np.rint(x / scale) + zero, 0, 255) if scale else np.zeros(x.shape)
    return quantized.astype(np.uint8), np.asarray(scale), np.asarray(zero, np.uint8)


def _requantized(total: Array, factor: Array | float, zero: Array, dtype: str) -> Array:
    return _quantized(np.asarray(total * factor), zero.astype(np.float64), dtype)


def _rows(value: Array) -> Array:
    """A scale or zero point for each row of the first factor."""
    return value.reshape(()) if value.size == 1 else value[..., None] if value.ndim == 1 else value


@kernel("QLinearMatMul", supports=_gives_quantized)
def quantized_matmul(
    call: Call, a: Array, a_scale: Array, a_zero: Array, b: Array, b_scale: Array, b_zero: Array,
    y_scale: Array, y_zero: Array,
) -> Array:  # fmt: skip
    """Returns the product of two quantized matrices, quantized."""
    left = a.astype(np.float64) - _rows(a_zero.astype(np.float64))
    right = b.astype(np.float64) - b_zero.astype(np.float64)
    factor = _rows(a_scale) * b_scale / y_scale
    return _requantized(np.asarray(left @ right), factor, y_zero, call.output_types[0])


@kernel("QLinearConv", supports=_gives_quantized)
def quantized_conv(
    call: Call, x: Array, x_scale: Array, x_zero: Array, w: Array, w_scale: Array, w_zero: Array,
    y_scale: Array, y_zero: Array, b: Array | None = None,
) -> Array:  # fmt: skip
    """Returns the convolution of quantized tensors, quantized; scale and zero point of w may be one per filter."""
    shape: Any = (-1,) + (1,) * (w.ndim - 1) if w_zero.size > 1 else ()
    weights = w.astype(np.float64) - w_zero.astype(np.float64).reshape(shape)
    total = conv(call, x.astype(np.float64) - float(x_zero.reshape(())), weights, None)
    per_filter: Any = (1, -1) + (1,) * (w.ndim - 2)
    if b is not None:
        total = total + b.astype(np.float64).reshape(per_filter)
    scales = w_scale.reshape(per_filter) if w_scale.size > 1 else w_scale.reshape(())
    return _requantized(total, x_scale.reshape(()) * scales / y_scale.reshape(()), y_zero, call.output_types[0])
