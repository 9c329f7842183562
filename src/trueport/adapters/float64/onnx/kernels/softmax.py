"""Softmax and its kin. Before operator set 13 they act on the input flattened to two dimensions at `axis`."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from trueport.adapters.float64.onnx.dtypes import Array
from trueport.adapters.float64.onnx.registry import Call, kernel


def softmax(x: Array, axis: int) -> Array:
    """Returns exp(x) normalized along `axis`."""
    if not x.size:
        return x
    shifted = np.exp(x - np.max(x, axis=axis, keepdims=True))
    return np.asarray(shifted / np.sum(shifted, axis=axis, keepdims=True))


def largest_and_rest(x: Array, axis: int) -> tuple[Array, Array]:
    """Returns the largest element m along `axis` (kept) and the sum of exp(x - m) over all elements but that one.

    The logarithm of a sum of exponentials is m + log1p(rest), which keeps its accuracy where m dominates.
    """
    index = np.expand_dims(np.argmax(x, axis=axis), axis)
    largest = np.take_along_axis(x, index, axis)
    shift = np.where(np.isinf(largest), 0.0, largest)
    terms = np.exp(x - shift)
    np.put_along_axis(terms, index, np.zeros_like(largest), axis)
    return largest, np.sum(terms, axis=axis, keepdims=True)


def log_softmax(x: Array, axis: int) -> Array:
    """Returns the logarithm of softmax."""
    if not x.size:
        return x
    largest, rest = largest_and_rest(x, axis)
    # A positive infinity makes the sum NaN, and with it every element.
    return np.where(largest == np.inf, np.nan, (x - largest) - np.log1p(rest))


def hardmax(x: Array, axis: int) -> Array:
    """Returns 1 at the first largest element along `axis`, else 0."""
    result = np.zeros_like(x)
    if x.size:
        np.put_along_axis(result, np.expand_dims(np.argmax(x, axis=axis), axis), 1.0, axis)
    return result


def _along(function: Callable[[Array, int], Array], call: Call, x: Array) -> Array:
    axis = call.attributes["axis"]
    if call.opset >= 13:
        return function(x, axis)
    rows = math.prod(x.shape[: axis % x.ndim if axis < 0 else axis])
    return function(x.reshape(rows, x.size // rows if rows else 0), 1).reshape(x.shape)


@kernel("Softmax")
def softmax_kernel(call: Call, x: Array) -> Array:
    """Returns softmax."""
    return _along(softmax, call, x)


@kernel("LogSoftmax")
def log_softmax_kernel(call: Call, x: Array) -> Array:
    """Returns the logarithm of softmax."""
    return _along(log_softmax, call, x)


@kernel("Hardmax", selects=True)
def hardmax_kernel(call: Call, x: Array) -> Array:
    """Returns hardmax."""
    return _along(hardmax, call, x)
