"""Padding in all modes."""

from __future__ import annotations

from typing import Any

import numpy as np

from trueport.adapters.float64.onnx.dtypes import Array
from trueport.adapters.float64.onnx.registry import Call, kernel

Widths = list[tuple[int, int]]


@kernel("Pad", selects=True)
def pad(
    call: Call, x: Array, pads: Array | None = None, value: Array | None = None, axes: Array | None = None
) -> Array:
    """Returns x with its borders extended; negative widths crop."""
    given = call.attributes["pads"] if pads is None else pads.tolist()
    along = list(range(x.ndim)) if axes is None else [axis % x.ndim for axis in axes.tolist()]
    widths: Widths = [(0, 0)] * x.ndim
    for index, axis in enumerate(along):
        widths[axis] = (given[index], given[index + len(along)])
    fill = call.attributes.get("value", 0.0) if pads is None else (0 if value is None else value.reshape(-1)[0])
    x = _crop(x, widths)
    widths = [(max(before, 0), max(after, 0)) for before, after in widths]
    mode = call.attributes.get("mode", "constant")
    return constant_pad(x, widths, fill) if mode == "constant" else np.pad(x, widths, mode)


def _crop(x: Array, widths: Widths) -> Array:
    if all(before >= 0 and after >= 0 for before, after in widths):
        return x
    return x[tuple(slice(max(-b, 0), size - max(-a, 0)) for (b, a), size in zip(widths, x.shape, strict=True))]


def constant_pad(x: Array, widths: Widths, fill: Any) -> Array:
    """Returns x with borders of one value; the same array where all widths are zero."""
    if not any(before or after for before, after in widths):
        return x
    shape = [before + size + after for (before, after), size in zip(widths, x.shape, strict=True)]
    result = np.full(shape, fill, dtype=x.dtype)
    result[tuple(slice(b, b + size) for (b, _), size in zip(widths, x.shape, strict=True))] = x
    return result
