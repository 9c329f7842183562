"""Rounding to floating-point types of 8, 6 and 4 bits, whose grid is part of what a cast to them means.

Between wide types a cast is left unrounded, because what it rounds away is noise. A type with two or three significant
bits is a quantization instead: its rounding is a decision, as that of `QuantizeLinear` is.

The layouts are those of the ONNX standard ("Float stored in 8 bits", "4 bit types", "Cast").
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trueport.adapters.float64.onnx.dtypes import Array


@dataclass(frozen=True, slots=True)
class Narrow:
    """A narrow type.

    Attributes:
        digits: significant bits, the hidden one included.
        lowest: exponent of the smallest normal number.
        largest: the largest finite number.
        overflow: what a number beyond it becomes where it is not held at the largest one.
        signed_zero: whether there is a negative zero.
    """

    digits: int
    lowest: int
    largest: float
    overflow: float = np.nan
    signed_zero: bool = True


NARROW = {
    "float8_e4m3fn": Narrow(4, -6, 448.0),
    "float8_e4m3fnuz": Narrow(4, -7, 240.0, signed_zero=False),
    "float8_e5m2": Narrow(3, -14, 57344.0, np.inf),
    "float8_e5m2fnuz": Narrow(3, -15, 57344.0, signed_zero=False),
    # These three have neither infinity nor NaN: what is too large is always held at the largest number.
    "float6_e2m3fn": Narrow(4, 0, 7.5, 7.5),
    "float6_e3m2fn": Narrow(3, -2, 28.0, 28.0),
    "float4_e2m1fn": Narrow(2, 0, 6.0, 6.0),
}
EXPONENT_ONLY = "float8_e8m0fnu"
"""Powers of two from 2^-127 to 2^127 and NaN, without sign and zero."""
_LARGEST_EXPONENT = 127


def is_narrow(dtype: str) -> bool:
    """Returns whether a type is one of those of this module."""
    return dtype in NARROW or dtype == EXPONENT_ONLY


def rounded(value: Array, dtype: str, *, saturate: bool = True, mode: str = "up") -> Array:
    """Returns the numbers of a narrow type that a cast gives.

    Args:
        value: float64, any shape.
        dtype: a key of `NARROW`, or `EXPONENT_ONLY`.
        saturate: whether what lies outside, infinity included, becomes the largest number.
        mode: `up`, `down` or `nearest`, for powers of two only; all others round half to even.
    """
    if dtype == EXPONENT_ONLY:
        return _power_of_two(value, saturate=saturate, mode=mode)
    kind = NARROW[dtype]
    _, exponent = np.frexp(value)
    step = np.ldexp(1.0, np.maximum(exponent - 1, kind.lowest) - (kind.digits - 1))
    result = np.where(np.isfinite(value), np.rint(value / step) * step, value)
    beyond = np.abs(result) > kind.largest
    result = np.where(beyond, np.copysign(kind.largest if saturate else kind.overflow, value), result)
    if np.isfinite(kind.overflow):
        result = np.where(np.isnan(value), 0.0, result)  # undefined: there is no such number
    return np.asarray(result if kind.signed_zero else result + 0.0)


def _power_of_two(value: Array, *, saturate: bool, mode: str) -> Array:
    magnitude = np.abs(value)
    mantissa, exponent = np.frexp(magnitude)  # in [1/2, 1)
    up = {"up": mantissa > 0.5, "down": np.zeros(value.shape, np.bool_), "nearest": mantissa >= 0.75}[mode]
    power = (exponent - 1 + up).astype(np.float64)
    power = np.where(np.isinf(magnitude), _LARGEST_EXPONENT + 1.0, power)
    power = np.where(magnitude == 0, -_LARGEST_EXPONENT - 1.0, power)
    outside = np.abs(power) > _LARGEST_EXPONENT
    held = np.exp2(np.clip(power, -_LARGEST_EXPONENT, _LARGEST_EXPONENT))
    return np.where(np.isnan(value) | (outside & (not saturate)), np.nan, held)
