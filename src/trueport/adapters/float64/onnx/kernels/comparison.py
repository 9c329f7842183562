"""Comparisons, logic, and tests for NaN and infinity."""

from __future__ import annotations

from typing import Any

import numpy as np

from trueport.adapters.float64.onnx.dtypes import Array
from trueport.adapters.float64.onnx.registry import Call, kernel


def _register(op_type: str, function: Any) -> None:
    def run(call: Call, a: Array, b: Array) -> Array:
        del call
        return np.asarray(function(a, b)).astype(np.bool_, copy=False)

    kernel(op_type, selects=True)(run)


for _name, _function in {
    "Equal": np.equal, "Greater": np.greater, "Less": np.less, "GreaterOrEqual": np.greater_equal,
    "LessOrEqual": np.less_equal, "And": np.logical_and, "Or": np.logical_or, "Xor": np.logical_xor,
}.items():  # fmt: skip
    _register(_name, _function)


@kernel("Not", selects=True)
def logical_not(call: Call, x: Array) -> Array:
    """Returns the negation."""
    del call
    return np.logical_not(x)


@kernel("IsNaN", selects=True)
def is_nan(call: Call, x: Array) -> Array:
    """Returns where x is NaN."""
    del call
    return np.isnan(x)


@kernel("IsInf", selects=True)
def is_inf(call: Call, x: Array) -> Array:
    """Returns where x is infinite with one of the signs asked for."""
    result = np.zeros(x.shape, dtype=np.bool_)
    if call.attributes["detect_positive"]:
        result = result | (x == np.inf)
    if call.attributes["detect_negative"]:
        result = result | (x == -np.inf)
    return result
