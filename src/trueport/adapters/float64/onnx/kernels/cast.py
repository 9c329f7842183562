"""Conversions between element types. Between wide float types only the declared type changes, and with it the range."""

from __future__ import annotations

import numpy as np
import onnx

from trueport.adapters.float64.onnx.dtypes import CODES, FLOAT_NAMES, STRING, Array, held_dtype, is_float, promote
from trueport.adapters.float64.onnx.narrow import EXPONENT_ONLY, is_narrow, rounded
from trueport.adapters.float64.onnx.registry import Call, MissingKernel, kernel

_PARTS_OF_A_BYTE = frozenset({"int4", "uint4", "int2", "uint2"})


def _is_covered(call: Call) -> bool:
    target = call.output_types[0]
    if target == STRING:
        # How a number with a fraction or a truth value is written is left open by the standard.
        return call.input_types[0] == STRING or call.input_types[0].startswith(("int", "uint"))
    # An undeclared target is taken from the value that `CastLike` is given.
    return not is_float(target) or target in FLOAT_NAMES or is_narrow(target)


@kernel("Cast", "CastLike", supports=_is_covered)
def cast(call: Call, x: Array, like: Array | None = None) -> Array:
    """Returns x in the target type: floats truncate toward zero, and are true where they are not zero.

    To integers of less than a byte they are rounded half to even instead (ONNX, "4 bit integer types", Cast).
    """
    target = call.output_types[0]
    if not target and like is not None:
        return x.astype(like.dtype, copy=False)
    if not target:
        raise MissingKernel(call.node.operator, call.node.label, "to an undeclared type")
    if target == "bool":
        return np.asarray((x.astype(np.float64) if x.dtype == object else x) != 0)
    if target == STRING:
        return x if x.dtype == object else np.asarray(np.vectorize(str, otypes=[object])(x.astype(np.int64)))
    if target in _PARTS_OF_A_BYTE and x.dtype.kind == "f":
        x = np.rint(x)
    held = x.astype(held_dtype(target), copy=False)
    if is_narrow(target):
        mode = call.attributes.get("round_mode", "up")
        return rounded(held, target, saturate=bool(call.attributes.get("saturate", 1)), mode=mode)
    return held


def _same_width(call: Call) -> bool:
    source, target = call.input_types[0], call.output_types[0]
    if not source or not target or STRING in (source, target) or EXPONENT_ONLY in (source, target):
        return False
    widths = [_stored(name).itemsize for name in (source, target)]
    packed = [name.endswith(("int4", "int2")) or "4_" in name or "6_" in name for name in (source, target)]
    return widths[0] == widths[1] and not any(packed)


def _stored(name: str) -> np.dtype[np.generic]:
    dtype: np.dtype[np.generic] = onnx.helper.tensor_dtype_to_np_dtype(CODES[name])
    return dtype


@kernel("BitCast", selects=True, supports=_same_width)
def bit_cast(call: Call, x: Array) -> Array:
    """Returns the numbers that the bits of x, rounded to its own type, are in another type of the same width."""
    own = np.ascontiguousarray(x.astype(_stored(call.input_types[0])))
    return promote(np.asarray(own.view(_stored(call.output_types[0])))).reshape(x.shape)
