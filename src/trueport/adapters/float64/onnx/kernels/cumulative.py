"""Running sums and products."""

from __future__ import annotations

from typing import Any

import numpy as np

from trueport.adapters.float64.onnx.dtypes import Array
from trueport.adapters.float64.onnx.registry import Call, kernel


def _running(call: Call, x: Array, axis: Array, accumulate: Any, neutral: int) -> Array:
    along = int(axis.reshape(()))
    flipped = np.flip(x, along) if call.attributes["reverse"] else x
    result = accumulate(flipped, axis=along, dtype=x.dtype)
    if call.attributes["exclusive"]:
        first = np.full_like(np.take(flipped, [0], along) if x.shape[along] else x, neutral)
        result = np.concatenate([first, np.delete(result, -1, along)], along) if x.shape[along] else result
    return np.asarray(np.flip(result, along) if call.attributes["reverse"] else result)


@kernel("CumSum")
def running_sum(call: Call, x: Array, axis: Array) -> Array:
    """Returns the running sum along an axis."""
    return _running(call, x, axis, np.cumsum, 0)


@kernel("CumProd")
def running_product(call: Call, x: Array, axis: Array) -> Array:
    """Returns the running product along an axis."""
    return _running(call, x, axis, np.cumprod, 1)
