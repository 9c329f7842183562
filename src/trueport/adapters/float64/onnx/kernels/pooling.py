"""Pooling. Which windows there are follows what ONNX Runtime produces where the standard leaves room."""

from __future__ import annotations

import math

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from trueport.adapters.float64.onnx.dtypes import Array
from trueport.adapters.float64.onnx.kernels.padding import constant_pad
from trueport.adapters.float64.onnx.kernels.reduction import mean
from trueport.adapters.float64.onnx.kernels.windows import Windows, windows_of
from trueport.adapters.float64.onnx.registry import Call, kernel

# From this many positions in a window on, NumPy's pairwise sum over a view beats adding slice after slice.
_MANY = 32


def _windows(call: Call, x: Array) -> Windows:
    ceil = bool(call.attributes.get("ceil_mode", 0))
    return windows_of(call, x.shape[2:], call.attributes["kernel_shape"], ceil=ceil)


def _window_sums(x: Array, windows: Windows) -> Array:
    padded = constant_pad(x, [(0, 0), (0, 0), *windows.reach(x.shape[2:])], 0)
    rank = len(windows.kernel)
    if math.prod(windows.kernel) < _MANY:
        return np.asarray(sum(padded[(slice(None), slice(None), *where)] for _, where in windows.offsets()))
    extents = tuple((k - 1) * d + 1 for k, d in zip(windows.kernel, windows.dilations, strict=True))
    view = sliding_window_view(padded, extents, axis=tuple(range(2, 2 + rank)))
    starts = tuple(slice(0, (n - 1) * s + 1, s) for n, s in zip(windows.output, windows.strides, strict=True))
    inner = tuple(slice(None, None, d) for d in windows.dilations)
    return np.asarray(view[(slice(None), slice(None), *starts, *inner)].sum(axis=tuple(range(-rank, 0))))


def _counts(windows: Windows, spatial: tuple[int, ...], *, include_pad: bool) -> Array:
    """Returns how many elements of each window count: those of the input, or of it and the declared padding."""
    total = np.ones((), dtype=np.float64)
    for i, size in enumerate(spatial):
        starts = np.arange(windows.output[i]) * windows.strides[i] - windows.before[i]
        positions = starts[:, None] + np.arange(windows.kernel[i]) * windows.dilations[i]
        low, high = (-windows.before[i], size + windows.after[i]) if include_pad else (0, size)
        inside = np.sum((positions >= low) & (positions < high), axis=1)
        total = total[..., None] * inside
    return total


@kernel("AveragePool")
def average_pool(call: Call, x: Array) -> Array:
    """Returns the mean of each window, over the elements that count."""
    windows = _windows(call, x)
    include = bool(call.attributes.get("count_include_pad", 0))
    return _window_sums(x, windows) / _counts(windows, x.shape[2:], include_pad=include)


@kernel("LpPool")
def lp_pool(call: Call, x: Array) -> Array:
    """Returns the p-norm of each window."""
    return _root(_window_sums(_powers(x, call.attributes["p"]), _windows(call, x)), call.attributes["p"])


def _powers(x: Array, p: int) -> Array:
    return np.abs(x) if p == 1 else np.square(x) if p == 2 else np.abs(x) ** p


def _root(x: Array, p: int) -> Array:
    return x if p == 1 else np.sqrt(x) if p == 2 else x ** (1.0 / p)


@kernel("MaxPool", selects=True)
def max_pool(call: Call, x: Array) -> Array | tuple[Array, Array]:
    """Returns the largest element of each window, and if asked for, where in the whole input it stands."""
    windows = _windows(call, x)
    lowest = -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min
    padded = constant_pad(x, [(0, 0), (0, 0), *windows.reach(x.shape[2:])], lowest)
    if call.n_outputs > 1:
        return _max_with_indices(call, x, padded, windows)
    result: Array | None = None
    for _, where in windows.offsets():
        part = padded[(slice(None), slice(None), *where)]
        result = part.copy() if result is None else np.maximum(result, part, out=result)
    assert result is not None
    return result


def _max_with_indices(call: Call, x: Array, padded: Array, windows: Windows) -> tuple[Array, Array]:
    spatial = x.shape[2:]
    column_major = bool(call.attributes.get("storage_order", 0))
    best = np.full((*x.shape[:2], *windows.output), padded.dtype.type(-np.inf if x.dtype.kind == "f" else 0))
    index = np.full(best.shape, -1, dtype=np.int64)
    for offset, where in windows.offsets():
        part = padded[(slice(None), slice(None), *where)]
        flat, inside = _positions(windows, spatial, offset, column_major=column_major)
        better = inside & ((part > best) | (index < 0) | (np.isnan(part) & ~np.isnan(best)))
        best = np.where(better, part, best)
        index = np.where(better, flat, index)
    planes = np.arange(math.prod(x.shape[:2])).reshape(*x.shape[:2], *[1] * len(spatial))
    return best, index + planes * math.prod(spatial)


def _positions(
    windows: Windows, spatial: tuple[int, ...], offset: tuple[int, ...], *, column_major: bool
) -> tuple[Array, Array]:
    flat = np.zeros((), dtype=np.int64)
    inside = np.ones((), dtype=np.bool_)
    for i, size in enumerate(spatial):
        at = np.arange(windows.output[i]) * windows.strides[i] - windows.before[i] + offset[i] * windows.dilations[i]
        weight = math.prod(spatial[:i]) if column_major else math.prod(spatial[i + 1 :])
        flat = flat[..., None] + at * weight
        inside = inside[..., None] & (at >= 0) & (at < size)
    return flat, inside


@kernel("MaxUnpool", selects=True)
def max_unpool(call: Call, x: Array, indices: Array, output_shape: Array | None = None) -> Array:
    """Returns zeros with each element of x at its index."""
    kernel_shape = call.attributes["kernel_shape"]
    rank = len(kernel_shape)
    strides = call.attributes.get("strides") or [1] * rank
    pads = call.attributes.get("pads") or [0] * (2 * rank)
    inferred = [(n - 1) * strides[i] + kernel_shape[i] - pads[i] - pads[i + rank] for i, n in enumerate(x.shape[2:])]
    small = np.zeros(math.prod((*x.shape[:2], *inferred)), dtype=x.dtype)
    small[indices.reshape(-1)] = x.reshape(-1)
    result = small.reshape(*x.shape[:2], *inferred)
    if output_shape is None or tuple(output_shape.tolist()) == result.shape:
        return result
    target = np.zeros(output_shape.tolist(), dtype=x.dtype)
    target[tuple(slice(n) for n in result.shape)] = result
    return target


def _spatial(x: Array) -> tuple[int, ...]:
    return tuple(range(2, x.ndim))


@kernel("GlobalAveragePool")
def global_average_pool(call: Call, x: Array) -> Array:
    """Returns the mean of each channel."""
    del call
    return mean(x, _spatial(x))


@kernel("GlobalMaxPool", selects=True)
def global_max_pool(call: Call, x: Array) -> Array:
    """Returns the largest element of each channel."""
    del call
    return np.asarray(np.max(x, axis=_spatial(x), keepdims=True))


@kernel("GlobalLpPool")
def global_lp_pool(call: Call, x: Array) -> Array:
    """Returns the p-norm of each channel."""
    p = call.attributes["p"]
    return _root(np.asarray(np.sum(_powers(x, p), axis=_spatial(x), keepdims=True)), p)
