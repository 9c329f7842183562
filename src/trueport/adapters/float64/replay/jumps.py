"""Discontinuous operators that all frameworks have, for the tables of the dialects."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueport.adapters.float64.replay.dialect import Jump
from trueport.adapters.float64.replay.operation import Operation

Array = NDArray[Any]


def is_real(value: Any) -> bool:
    """Whether a value is an array of floating-point numbers."""
    return isinstance(value, np.ndarray) and value.dtype.kind == "f"


def takes_real(operation: Operation, arguments: list[Any]) -> bool:
    """Whether the first argument is of floating point, so that rounding can move it."""
    del operation
    return is_real(arguments[0])


_GRIDS = ("int", "uint", "float8", "float6", "float4")
"""How the names of types begin whose rounding is a decision."""


def _to_grid(operation: Operation, arguments: list[Any]) -> bool:
    return is_real(arguments[0]) and operation.output_types[0].startswith(_GRIDS)


def _cast_undefined(operation: Operation, arguments: list[Any]) -> Array | None:
    """Where a cast to an integer is not defined: what is not finite or does not fit."""
    value = arguments[0]
    if operation.output_types[0].startswith("float"):
        return _narrow_undefined(operation.output_types[0], value)
    low, high = _range(operation.output_types[0])
    # To less than a byte ONNX rounds to nearest, to all others it truncates.
    whole = np.rint(value) if high - low < 16 else np.trunc(value)
    with np.errstate(invalid="ignore"):
        return np.asarray(~((whole >= low) & (whole <= high)))


def _range(name: str) -> tuple[float, float]:
    """Returns the smallest and the largest number of an integer type, of those that NumPy lacks too."""
    unsigned, bits = name.startswith("u"), int(name.removeprefix("u").removeprefix("int"))
    return (0.0, 2.0**bits - 1) if unsigned else (-(2.0 ** (bits - 1)), 2.0 ** (bits - 1) - 1)


def _narrow_undefined(dtype: str, value: Array) -> Array:
    """Where there is no number to cast to: no NaN in types of less than 8 bits, no sign in powers of two."""
    if dtype.startswith(("float6", "float4")):
        return np.asarray(np.isnan(value))
    return np.signbit(value) & ~np.isnan(value) if "e8m0" in dtype else np.zeros(value.shape, np.bool_)


def _remainder(operation: Operation, main: list[Any], outputs: list[Any], noisy: list[Any]) -> list[Any]:
    """Returns x - q y with the quotient of the main run."""
    del operation
    with np.errstate(all="ignore"):
        quotient = np.rint((main[0] - outputs[0]) / main[1])
        return [np.where(np.isfinite(quotient), noisy[0] - quotient * noisy[1], outputs[0])]


PLAIN = Jump(when=takes_real)
"""Nothing but a decision: a rounding to whole numbers, a comparison."""
CAST = Jump(when=_to_grid, undefined=_cast_undefined)
REMAINDER = Jump(when=takes_real, continuous=_remainder)
