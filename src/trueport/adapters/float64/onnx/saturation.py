"""The one effect of a narrow float type that float64 evaluation keeps: overflow to infinity and underflow to zero.

Where the real program overflows, that is its meaning, and promotion would hide it. Everything between is left
unrounded.
"""

from __future__ import annotations

import numpy as np

from trueport.adapters.float64.onnx.dtypes import Array

_SMALL = 512
_CHUNK = 1 << 15


def saturate(value: Array, limits: tuple[float, float]) -> Array:
    """Returns `value` with magnitudes that round to infinity or to zero in a narrow type replaced by these.

    Args:
        value: float64 of any shape; it is not modified.
        limits: of the type, as in `dtypes.LIMITS`.
    """
    overflow, underflow = limits
    size = value.size
    if not size:
        return value
    # The common case must be cheap; a NaN fails a comparison and takes the slow path.
    if size <= _SMALL:
        # Sorting in place costs less here than the two calls of a reduction.
        flat = np.abs(value).ravel()
        flat.sort()
        smallest, largest = flat.item(0), flat.item(-1)
    else:
        smallest, largest = _extremes(value.reshape(-1))
    if largest < overflow and smallest > underflow:
        return value
    return _saturate_elements(value, np.abs(value), overflow, underflow)


def _extremes(flat: Array) -> tuple[float, float]:
    """Returns the smallest and largest magnitude, NaN where any is, without a temporary of the size of the array."""
    buffer = np.empty(min(flat.size, _CHUNK))
    smallest, largest = np.inf, 0.0
    for start in range(0, flat.size, _CHUNK):
        chunk = flat[start : start + _CHUNK]
        magnitude = np.abs(chunk, out=buffer[: chunk.size])
        # NumPy's minimum keeps a NaN, Python's does not.
        smallest = float(np.minimum(smallest, np.minimum.reduce(magnitude)))
        largest = float(np.maximum(largest, np.maximum.reduce(magnitude)))
    return smallest, largest


def _saturate_elements(value: Array, magnitude: Array, overflow: float, underflow: float) -> Array:
    large = magnitude >= overflow
    small = magnitude <= underflow
    changed = np.count_nonzero(small) != value.size - np.count_nonzero(value) or bool(
        np.any(large & (magnitude != np.inf))
    )
    if not changed:
        return value
    result = np.where(large, np.copysign(np.inf, value), value)
    return np.where(small, np.copysign(0.0, value), result)
