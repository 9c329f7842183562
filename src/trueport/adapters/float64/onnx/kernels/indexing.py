"""Operators that select elements by index, mask or rank."""

from __future__ import annotations

import numpy as np

from trueport.adapters.float64.onnx.dtypes import Array
from trueport.adapters.float64.onnx.registry import Call, kernel


@kernel("Gather", selects=True)
def gather(call: Call, x: Array, indices: Array) -> Array:
    """Returns slices of x along an axis."""
    return np.asarray(np.take(x, indices, axis=call.attributes["axis"]))


@kernel("GatherElements", selects=True)
def gather_elements(call: Call, x: Array, indices: Array) -> Array:
    """Returns single elements of x, moved along an axis."""
    axis = call.attributes["axis"] % x.ndim
    where = list(np.ix_(*(np.arange(size) for size in indices.shape)))
    where[axis] = indices
    return np.asarray(x[tuple(where)])


@kernel("GatherND", selects=True)
def gather_nd(call: Call, x: Array, indices: Array) -> Array:
    """Returns slices of x, each addressed by a vector of indices."""
    batch = call.attributes.get("batch_dims", 0)
    if not batch:
        return np.asarray(x[tuple(np.moveaxis(indices, -1, 0))])
    outer = x.shape[:batch]
    flat_x = x.reshape(-1, *x.shape[batch:])
    flat_indices = indices.reshape(flat_x.shape[0], *indices.shape[batch:])
    picked = [row[tuple(np.moveaxis(where, -1, 0))] for row, where in zip(flat_x, flat_indices, strict=True)]
    return np.stack(picked).reshape(*outer, *np.shape(picked[0]))


@kernel("Where", selects=True)
def where(call: Call, condition: Array, x: Array, y: Array) -> Array:
    """Returns x where the condition holds, else y."""
    del call
    return np.where(condition, x, y)


@kernel("Compress", selects=True)
def compress(call: Call, x: Array, condition: Array) -> Array:
    """Returns the slices of x for which the condition holds."""
    axis = call.attributes.get("axis")
    return np.compress(condition, x, axis)


@kernel("NonZero", selects=True)
def non_zero(call: Call, x: Array) -> Array:
    """Returns the indices of elements that are not zero, one column for each."""
    del call
    if x.ndim == 0:
        return np.zeros((0, int(bool(x))), dtype=np.int64)
    return np.asarray(np.nonzero(x), dtype=np.int64)


@kernel("OneHot", selects=True)
def one_hot(call: Call, indices: Array, depth: Array, values: Array) -> Array:
    """Returns the on-value at each index along a new axis, else the off-value; indices out of range have none."""
    count = int(depth.reshape(-1)[0])
    if count < 0:
        raise ValueError(f"expected a depth that is not negative, got {count}")
    axis = call.attributes["axis"]
    wanted = indices.astype(np.int64) if indices.dtype.kind == "f" else indices
    inside = (wanted >= -count) & (wanted < count)
    positions = np.where(inside, np.where(wanted < 0, wanted + count, wanted), -1)
    axis = axis if axis >= 0 else axis + indices.ndim + 1
    shape = [1] * (indices.ndim + 1)
    shape[axis] = count
    hot = np.expand_dims(positions, axis) == np.arange(count).reshape(shape)
    return np.asarray(np.where(hot, values[1], values[0]))


def _arg(call: Call, x: Array, *, largest: bool) -> Array:
    axis, keep = call.attributes["axis"], bool(call.attributes["keepdims"])
    pick = np.argmax if largest else np.argmin
    if call.attributes.get("select_last_index", 0):
        index = x.shape[axis] - 1 - pick(np.flip(x, axis), axis=axis, keepdims=keep)
    else:
        index = pick(x, axis=axis, keepdims=keep)
    return np.asarray(index, dtype=np.int64)


@kernel("ArgMax", selects=True)
def arg_max(call: Call, x: Array) -> Array:
    """Returns the index of the first (or last) largest element."""
    return _arg(call, x, largest=True)


@kernel("ArgMin", selects=True)
def arg_min(call: Call, x: Array) -> Array:
    """Returns the index of the first (or last) smallest element."""
    return _arg(call, x, largest=False)


@kernel("TopK", selects=True)
def top_k(call: Call, x: Array, k: Array | None = None) -> tuple[Array, Array]:
    """Returns the largest (or smallest) k elements and their indices; of equal ones, those with lower indices."""
    axis = call.attributes["axis"]
    count = call.attributes["k"] if k is None else int(k.reshape(-1)[0])
    if not 0 <= count <= x.shape[axis]:
        raise ValueError(f"the {count} largest of {x.shape[axis]} elements")
    if call.attributes.get("largest", 1):
        # Sorting the reversed array stably and reversing the result keeps equal elements in their order.
        order = x.shape[axis] - 1 - np.flip(np.argsort(np.flip(x, axis), axis=axis, kind="stable"), axis)
    else:
        order = np.argsort(x, axis=axis, kind="stable")
    index = np.take(order, np.arange(count), axis=axis)
    return np.take_along_axis(x, index, axis), index.astype(np.int64, copy=False)


@kernel("Unique", selects=True)
def unique(call: Call, x: Array) -> tuple[Array, ...]:
    """Returns the distinct values (or slices), where each first occurs, which of them each is, and their counts."""
    axis = call.attributes.get("axis")
    _, first, inverse, counts = np.unique(x, return_index=True, return_inverse=True, return_counts=True, axis=axis)
    inverse = inverse.reshape(-1)
    if not call.attributes["sorted"]:
        order = np.argsort(first)
        rank = np.empty_like(order)
        rank[order] = np.arange(order.size)
        first, inverse, counts = first[order], rank[inverse], counts[order]
    values = x.reshape(-1)[first] if axis is None else np.take(x, first, axis)
    return values, *(part.astype(np.int64, copy=False) for part in (first, inverse, counts))
