"""Operators that write elements by index. The input is copied."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from trueport.adapters.float64.onnx.dtypes import Array
from trueport.adapters.float64.onnx.registry import Call, kernel

_REDUCTIONS: dict[str, Any] = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}


def _write(call: Call, x: Array, where: tuple[Any, ...], updates: Array) -> Array:
    result = x.copy()
    reduction = call.attributes.get("reduction", "none")
    if reduction == "none":
        result[where] = updates
    else:
        _REDUCTIONS[reduction].at(result, where, updates)
    return result


@kernel("Scatter", "ScatterElements")
def scatter_elements(call: Call, x: Array, indices: Array, updates: Array) -> Array:
    """Returns x with single elements replaced or combined, each moved along an axis."""
    axis = call.attributes["axis"] % x.ndim
    where = list(np.ix_(*(np.arange(size) for size in indices.shape)))
    where[axis] = indices
    return _write(call, x, tuple(where), updates)


@kernel("ScatterND")
def scatter_nd(call: Call, x: Array, indices: Array, updates: Array) -> Array:
    """Returns x with slices replaced or combined, each addressed by a vector of indices."""
    return _write(call, x, tuple(np.moveaxis(indices, -1, 0)), updates)


@kernel("Col2Im")
def col2im(call: Call, x: Array, image_shape: Array, block_shape: Array) -> Array:
    """Returns images into which columns of blocks are added back."""
    image, block = image_shape.tolist(), block_shape.tolist()
    rank = len(image)
    dilations = call.attributes.get("dilations") or [1] * rank
    strides = call.attributes.get("strides") or [1] * rank
    pads = call.attributes.get("pads") or [0] * (2 * rank)
    padded = [size + pads[i] + pads[i + rank] for i, size in enumerate(image)]
    counts = [(p - d * (b - 1) - 1) // s + 1 for p, d, b, s in zip(padded, dilations, block, strides, strict=True)]
    expected = [math.prod(block), math.prod(counts)]
    if x.shape[1] % expected[0] or x.shape[2] != expected[1]:
        raise ValueError(f"expected [n, channels * {expected[0]}, {expected[1]}] by image and block, got {[*x.shape]}")
    columns = x.reshape(x.shape[0], -1, *block, *counts)
    result = np.zeros((*columns.shape[:2], *padded), dtype=x.dtype)
    for offset in np.ndindex(*block):
        where = tuple(
            slice(o * d, o * d + (n - 1) * s + 1, s)
            for o, d, n, s in zip(offset, dilations, counts, strides, strict=True)
        )
        result[(slice(None), slice(None), *where)] += columns[(slice(None), slice(None), *offset)]
    return result[(slice(None), slice(None), *(slice(pads[i], pads[i] + size) for i, size in enumerate(image)))]
