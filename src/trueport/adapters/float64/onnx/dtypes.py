"""Declared element types: their names, how they are held during evaluation, and where they overflow or underflow."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import onnx

Array = npt.NDArray[Any]

STRING = "str"
FLOAT_NAMES = frozenset({"float16", "bfloat16", "float32", "float64"})

# (exponent of the largest binade, significand bits, exponent of the smallest subnormal)
_LAYOUT = {"float16": (15, 11, -24), "bfloat16": (127, 8, -133), "float32": (127, 24, -149)}


def _limits(exponent: int, precision: int, smallest: int) -> tuple[float, float]:
    # A tie rounds to even: away from the largest finite value (its significand is odd), and down to zero.
    return (2.0 - 2.0**-precision) * 2.0**exponent, 2.0 ** (smallest - 1)


LIMITS: dict[str, tuple[float, float]] = {name: _limits(*layout) for name, layout in _LAYOUT.items()}
"""For each narrow float type: magnitudes from which a value rounds to infinity, and up to which it rounds to zero."""

LARGEST: dict[str, float] = {
    name: (2.0 - 2.0 ** (1 - precision)) * 2.0**exponent for name, (exponent, precision, _) in _LAYOUT.items()
} | {"float64": float(np.finfo(np.float64).max)}
"""The largest finite value of each float type."""


def _names() -> dict[int, str]:
    names: dict[int, str] = {0: ""}
    for code in onnx.TensorProto.DataType.values():
        if code == onnx.TensorProto.STRING:
            names[code] = STRING
        elif code != onnx.TensorProto.UNDEFINED:
            names[code] = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(code)).name
    return names


NAMES: dict[int, str] = _names()
"""The NumPy-style name of each `TensorProto.DataType`; the empty name where none is declared."""

CODES: dict[str, int] = {name: code for code, name in NAMES.items()}


def is_float(name: str) -> bool:
    """Returns whether values declared `name` are held in float64 (the 8-bit and 4-bit float types included)."""
    return name in FLOAT_NAMES or name.startswith(("float8", "float4", "float6"))


def held_dtype(name: str) -> np.dtype[Any]:
    """Returns the dtype in which values declared `name` are held during evaluation."""
    if is_float(name):
        return np.dtype(np.float64)
    if name == STRING:
        return np.dtype(object)
    if name.startswith("complex"):
        return np.dtype(np.complex128)
    if name in ("int4", "uint4", "int2", "uint2"):
        packed: np.dtype[Any] = onnx.helper.tensor_dtype_to_np_dtype(CODES[name])
        return packed
    held: np.dtype[Any] = np.dtype(name)
    return held


def promote(value: Array) -> Array:
    """Returns `value` in float64 if it is of any floating-point type (bfloat16 and float8 too), else unchanged."""
    kind = value.dtype.kind
    if value.dtype == np.float64 or kind in "biuOUSM":
        return value
    if kind == "c":
        return value.astype(np.complex128)
    if kind == "f" or "float" in value.dtype.name:
        return value.astype(np.float64)
    return value


def elem_type(info: onnx.TypeProto) -> str:
    """Returns the name of the element type of a tensor, sequence or optional type, empty where none is declared."""
    kind = info.WhichOneof("value")
    if kind == "tensor_type":
        return NAMES.get(info.tensor_type.elem_type, "")
    if kind == "sparse_tensor_type":
        return NAMES.get(info.sparse_tensor_type.elem_type, "")
    if kind == "sequence_type":
        return elem_type(info.sequence_type.elem_type)
    if kind == "optional_type":
        return elem_type(info.optional_type.elem_type)
    return ""
