"""Conversions between element types. Between float types only the declared type changes, and with it the range."""

from __future__ import annotations

import numpy as np

from trueport.adapters.float64.onnx.dtypes import FLOAT_NAMES, STRING, Array, held_dtype, is_float
from trueport.adapters.float64.onnx.registry import Call, MissingKernel, kernel


def _is_covered(call: Call) -> bool:
    target = call.output_types[0]
    # An undeclared target is taken from the value that `CastLike` is given.
    return target != STRING and (not is_float(target) or target in FLOAT_NAMES)


@kernel("Cast", "CastLike", supports=_is_covered)
def cast(call: Call, x: Array, like: Array | None = None) -> Array:
    """Returns x in the target type: floats truncate toward zero, and are true where they are not zero."""
    target = call.output_types[0]
    if not target and like is not None:
        return x.astype(like.dtype, copy=False)
    if not target:
        raise MissingKernel(call.node.operator, call.node.label, "to an undeclared type")
    if target == "bool":
        return np.asarray((x.astype(np.float64) if x.dtype == object else x) != 0)
    return x.astype(held_dtype(target), copy=False)
