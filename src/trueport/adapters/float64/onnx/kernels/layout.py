"""Operators that only move elements or change shapes."""

from __future__ import annotations

import math

import numpy as np

from trueport.adapters.float64.onnx.dtypes import Array
from trueport.adapters.float64.onnx.registry import Call, MissingKernel, kernel


@kernel("Identity", "Dropout", selects=True)
def identity(
    call: Call, x: Array, ratio: Array | None = None, training: Array | None = None
) -> Array | tuple[Array, ...]:
    """Returns x; `Dropout` also the mask of what is kept, which in inference is everything."""
    if training is not None and bool(training.reshape(())) and (ratio is None or float(ratio.reshape(())) != 0.0):
        raise MissingKernel(call.node.operator, call.node.label, "in training mode it draws random numbers")
    return (x, np.ones(x.shape, dtype=np.bool_)) if call.n_outputs > 1 else x


@kernel("Reshape", selects=True)
def reshape(call: Call, x: Array, shape: Array) -> Array:
    """Returns x in another shape; 0 copies a dimension unless `allowzero`, -1 is what remains."""
    target = shape.tolist()
    if not call.attributes.get("allowzero", 0):
        target = [x.shape[i] if size == 0 else size for i, size in enumerate(target)]
    if -1 in target and x.size == 0:
        # NumPy refuses to infer a dimension of an empty array when the others multiply to zero.
        known = math.prod(size for size in target if size != -1)
        target = [(0 if known else x.size) if size == -1 else size for size in target]
    return x.reshape(target)


@kernel("Flatten", selects=True)
def flatten(call: Call, x: Array) -> Array:
    """Returns x as a matrix, with the dimensions before `axis` as rows."""
    axis = call.attributes["axis"]
    rows = math.prod(x.shape[:axis])
    return x.reshape(rows, math.prod(x.shape[axis:]))


@kernel("Transpose", selects=True)
def transpose(call: Call, x: Array) -> Array:
    """Returns x with its dimensions permuted, by default reversed."""
    return np.transpose(x, call.attributes.get("perm") or None)


@kernel("Squeeze", selects=True)
def squeeze(call: Call, x: Array, axes: Array | None = None) -> Array:
    """Returns x without dimensions of size 1."""
    given = call.attributes.get("axes") if axes is None else axes.reshape(-1).tolist()
    return np.squeeze(x) if given is None else np.squeeze(x, tuple(given))


@kernel("Unsqueeze", selects=True)
def unsqueeze(call: Call, x: Array, axes: Array | None = None) -> Array:
    """Returns x with dimensions of size 1 inserted."""
    given = call.attributes["axes"] if axes is None else axes.reshape(-1).tolist()
    return np.expand_dims(x, tuple(given))


@kernel("Concat", selects=True)
def concat(call: Call, *values: Array) -> Array:
    """Returns the inputs joined along an axis."""
    return np.concatenate(values, call.attributes["axis"])


@kernel("Split", selects=True)
def split(call: Call, x: Array, sizes: Array | None = None) -> tuple[Array, ...]:
    """Returns x cut along an axis into equal parts or parts of the given sizes."""
    axis = call.attributes["axis"]
    given = call.attributes.get("split") if sizes is None else sizes.tolist()
    if given is None:
        parts = call.attributes.get("num_outputs") or call.n_outputs
        chunk = -(-x.shape[axis] // parts)
        bounds = [min(chunk * i, x.shape[axis]) for i in range(1, parts)]
    else:
        if sum(given) != x.shape[axis]:
            raise ValueError(f"parts {given} of a dimension of size {x.shape[axis]}")
        bounds = np.cumsum(given)[:-1].tolist()
    return tuple(np.split(x, bounds, axis))


def _span(start: int, end: int, step: int, size: int) -> slice:
    if step > 0:
        low = min(max(start + size if start < 0 else start, 0), size)
        high = min(max(end + size if end < 0 else end, 0), size)
        return slice(low, high, step)
    low = min(max(start + size if start < 0 else start, 0), size - 1)
    high = min(max(end + size if end < 0 else end, -1), size - 1)
    return slice(low, None if high < 0 else high, step)


@kernel("Slice", selects=True)
def slice_(
    call: Call, x: Array, starts: Array | None = None, ends: Array | None = None,
    axes: Array | None = None, steps: Array | None = None,
) -> Array:  # fmt: skip
    """Returns the part of x between starts and ends, with bounds clamped to the shape."""
    if starts is None or ends is None:
        first, last = call.attributes["starts"], call.attributes["ends"]
        along = call.attributes.get("axes") or list(range(len(first)))
    else:
        first, last = starts.tolist(), ends.tolist()
        along = list(range(len(first))) if axes is None else axes.tolist()
    strides = [1] * len(first) if steps is None else steps.tolist()
    index = [slice(None)] * x.ndim
    for start, end, axis, step in zip(first, last, along, strides, strict=True):
        size = x.shape[axis]
        index[axis] = _span(start, end, step, size) if size else slice(0, 0)
    return x[tuple(index)]


@kernel("Expand", selects=True)
def expand(call: Call, x: Array, shape: Array) -> Array:
    """Returns x broadcast with a shape."""
    del call
    return np.broadcast_to(x, np.broadcast_shapes(x.shape, tuple(shape.tolist())))


@kernel("Tile", selects=True)
def tile(call: Call, x: Array, repeats: Array) -> Array:
    """Returns x repeated along each dimension."""
    del call
    return np.tile(x, repeats.tolist())


@kernel("Shape", selects=True)
def shape(call: Call, x: Array) -> Array:
    """Returns the shape, or the part of it between `start` and `end`."""
    start, end = call.attributes.get("start", 0), call.attributes.get("end")
    return np.asarray(x.shape[slice(start, end)], dtype=np.int64)


@kernel("Size", selects=True)
def size(call: Call, x: Array) -> Array:
    """Returns the number of elements."""
    del call
    return np.asarray(x.size, dtype=np.int64)


@kernel("DepthToSpace", selects=True)
def depth_to_space(call: Call, x: Array) -> Array:
    """Returns blocks of channels laid out in space."""
    block = call.attributes["blocksize"]
    batch, channels, *spatial = x.shape
    rank, depth = len(spatial), channels // block ** len(spatial)
    blocks = [block] * rank
    if call.attributes.get("mode", "DCR") == "DCR":
        parts = x.reshape(batch, *blocks, depth, *spatial)
        order = [0, rank + 1]
        pairs = [(rank + 2 + i, 1 + i) for i in range(rank)]
    else:
        parts = x.reshape(batch, depth, *blocks, *spatial)
        order = [0, 1]
        pairs = [(2 + rank + i, 2 + i) for i in range(rank)]
    order += [axis for pair in pairs for axis in pair]
    return np.transpose(parts, order).reshape(batch, depth, *(n * block for n in spatial))


@kernel("SpaceToDepth", selects=True)
def space_to_depth(call: Call, x: Array) -> Array:
    """Returns blocks of space laid out as channels."""
    block = call.attributes["blocksize"]
    batch, channels, *spatial = x.shape
    rank = len(spatial)
    parts = x.reshape(batch, channels, *(size for n in spatial for size in (n // block, block)))
    inner = [3 + 2 * i for i in range(rank)]
    outer = [2 + 2 * i for i in range(rank)]
    order = [0, 1, *inner, *outer] if call.attributes.get("mode") == "CRD" else [0, *inner, 1, *outer]
    return np.transpose(parts, order).reshape(batch, channels * block**rank, *(n // block for n in spatial))


@kernel("Trilu", selects=True)
def trilu(call: Call, x: Array, diagonal: Array | None = None) -> Array:
    """Returns the upper or lower triangle of each matrix, zero elsewhere."""
    k = 0 if diagonal is None else int(diagonal.reshape(-1)[0])
    return np.asarray(np.triu(x, k) if call.attributes["upper"] else np.tril(x, k))


@kernel("ReverseSequence", selects=True)
def reverse_sequence(call: Call, x: Array, lengths: Array) -> Array:
    """Returns x with the first elements of each sequence reversed."""
    batch_axis, time_axis = call.attributes["batch_axis"], call.attributes["time_axis"]
    moved = np.moveaxis(x, (batch_axis, time_axis), (0, 1))
    result = moved.copy()
    for row, count in enumerate(lengths.tolist()):
        result[row, :count] = moved[row, :count][::-1]
    return np.moveaxis(result, (0, 1), (batch_axis, time_axis))


@kernel("CenterCropPad", selects=True)
def center_crop_pad(call: Call, x: Array, shape: Array) -> Array:
    """Returns x cropped or padded with zeros around its centre."""
    axes = call.attributes.get("axes") or list(range(x.ndim))
    for axis, target in zip(axes, shape.tolist(), strict=True):
        x = _crop_or_pad(x, axis, target)
    return x


def _crop_or_pad(x: Array, axis: int, target: int) -> Array:
    excess = x.shape[axis] - target
    if excess >= 0:
        return np.take(x, np.arange(excess // 2, excess // 2 + target), axis)
    before = -excess // 2
    widths = [(0, 0)] * x.ndim
    widths[axis] = (before, -excess - before)
    return np.pad(x, widths)


@kernel("TensorScatter", selects=True)
def tensor_scatter(call: Call, cache: Array, update: Array, indices: Array | None = None) -> Array:
    """Returns the cache with the update written at each batch's own position along an axis."""
    axis = call.attributes["axis"] % cache.ndim
    starts = [0] * cache.shape[0] if indices is None else indices.tolist()
    result = cache.copy()
    for batch, start in enumerate(starts):
        where = start + np.arange(update.shape[axis])
        if call.attributes["mode"] == "circular":
            where = where % cache.shape[axis]
        np.moveaxis(result[batch], axis - 1, 0)[where] = np.moveaxis(update[batch], axis - 1, 0)
    return result
