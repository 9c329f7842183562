"""Reductions over axes, which moved from attribute to input at operator set 13 (sum) and 18 (the others)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from trueport.adapters.float64.onnx.dtypes import Array
from trueport.adapters.float64.onnx.kernels.softmax import largest_and_rest
from trueport.adapters.float64.onnx.registry import Call, kernel

Axes = tuple[int, ...]


def _sum(x: Array, axes: Axes, keep: bool) -> Array:
    return np.asarray(np.sum(x, axis=axes, keepdims=keep, dtype=x.dtype))


def mean(x: Array, axes: Axes, keep: bool = True) -> Array:
    """Returns the mean over `axes`, NaN where there is nothing; without the warning that NumPy's own would raise."""
    total = np.sum(x, axis=axes, keepdims=keep)
    return np.asarray(total / np.float64(math.prod(x.shape[axis] for axis in axes)))


def _mean(x: Array, axes: Axes, keep: bool) -> Array:
    if x.dtype.kind == "f":
        return mean(x, axes, keep)
    total = np.sum(x, axis=axes, keepdims=keep, dtype=np.int64)
    count = max(x.size // max(np.size(total), 1), 1)
    return np.asarray(np.trunc(total / count)).astype(x.dtype)


def _product(x: Array, axes: Axes, keep: bool) -> Array:
    return np.asarray(np.prod(x, axis=axes, keepdims=keep, dtype=x.dtype))


def _lowest(x: Array) -> Any:
    if x.dtype.kind == "f":
        return -np.inf
    return False if x.dtype == np.bool_ else np.iinfo(x.dtype).min


def _highest(x: Array) -> Any:
    if x.dtype.kind == "f":
        return np.inf
    return True if x.dtype == np.bool_ else np.iinfo(x.dtype).max


def _max(x: Array, axes: Axes, keep: bool) -> Array:
    return np.asarray(np.max(x, axis=axes, keepdims=keep, initial=_lowest(x)))


def _min(x: Array, axes: Axes, keep: bool) -> Array:
    return np.asarray(np.min(x, axis=axes, keepdims=keep, initial=_highest(x)))


def _sum_square(x: Array, axes: Axes, keep: bool) -> Array:
    return _sum(np.square(x), axes, keep)


def _l1(x: Array, axes: Axes, keep: bool) -> Array:
    return _sum(np.abs(x), axes, keep)


def _l2(x: Array, axes: Axes, keep: bool) -> Array:
    return np.asarray(np.sqrt(np.sum(np.square(x.astype(np.float64)), axis=axes, keepdims=keep))).astype(x.dtype)


def _log_sum(x: Array, axes: Axes, keep: bool) -> Array:
    return np.asarray(np.log(np.sum(x, axis=axes, keepdims=keep))).astype(x.dtype)


def _log_sum_exp(x: Array, axes: Axes, keep: bool) -> Array:
    kept = [axis for axis in range(x.ndim) if axis not in axes]
    outer = tuple(x.shape[axis] for axis in kept)
    shape = tuple(1 if axis in axes else size for axis, size in enumerate(x.shape)) if keep else outer
    flat = np.transpose(x, (*kept, *axes)).reshape(*outer, -1).astype(np.float64)
    if not flat.shape[-1] or not flat.size:
        return np.full(shape, -np.inf).astype(x.dtype)
    largest, rest = largest_and_rest(flat, -1)
    return np.asarray(largest + np.log1p(rest)).reshape(shape).astype(x.dtype)


def _axes(call: Call, x: Array, given: Array | None) -> Axes | None:
    """Returns the axes, or None for an operator that is to return its input as it is."""
    axes = call.attributes.get("axes") if given is None else given.reshape(-1).tolist()
    if not axes:
        return () if call.attributes.get("noop_with_empty_axes", 0) else tuple(range(x.ndim))
    return tuple(sorted(int(axis) % x.ndim for axis in axes))


def _register(op_type: str, function: Any, *, selects: bool = False) -> None:
    def run(call: Call, x: Array, axes: Array | None = None) -> Array:
        found = _axes(call, x, axes)
        result: Array = function(x, found, bool(call.attributes.get("keepdims", 1)))
        return result

    kernel(op_type, selects=selects)(run)


for _name, _function in {
    "ReduceSum": _sum, "ReduceMean": _mean, "ReduceProd": _product, "ReduceSumSquare": _sum_square, "ReduceL1": _l1,
    "ReduceL2": _l2, "ReduceLogSum": _log_sum, "ReduceLogSumExp": _log_sum_exp,
}.items():  # fmt: skip
    _register(_name, _function)
_register("ReduceMax", _max, selects=True)
_register("ReduceMin", _min, selects=True)
