"""Counting of n-grams."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from trueport.adapters.float64.onnx.dtypes import Array
from trueport.adapters.float64.onnx.registry import Call, kernel


def _has_one_meaning(call: Call) -> bool:
    """The standard weighs the i-th n-gram of the pool, runtimes the i-th output: only where both are the same."""
    attributes = call.attributes
    indices = attributes.get("ngram_indexes") or []
    weighs = bool(attributes.get("weights")) and attributes.get("mode") != "TF"
    return not weighs or list(indices) == list(range(len(indices)))


@kernel("TfIdfVectorizer", supports=_has_one_meaning)
def tf_idf_vectorizer(call: Call, x: Array) -> Array:
    """Returns how often each n-gram of a pool occurs in each row of x, or whether it does, times its weight."""
    attributes = call.attributes
    indices = attributes["ngram_indexes"]
    places = {gram: indices[number] for number, gram in enumerate(_pool(attributes))}
    rows = x.reshape(1, -1) if x.ndim < 2 else x
    counts = np.zeros((rows.shape[0], max(indices) + 1))
    for row, result in zip(rows.tolist(), counts, strict=True):
        for gram in _occurrences(row, attributes):
            if gram in places:
                result[places[gram]] += 1
    mode, weights = attributes["mode"], attributes.get("weights")
    result = np.minimum(counts, 1.0) if mode == "IDF" else counts
    if mode != "TF" and weights:
        result = result * np.asarray(weights, dtype=np.float64)
    return np.asarray(result if x.ndim == 2 else result[0])


def _pool(attributes: Any) -> Iterator[tuple[Any, ...]]:
    """Yields the n-grams of the pool in order: all of one element, then all of two, and so on."""
    items = attributes.get("pool_strings") or attributes.get("pool_int64s") or []
    starts = [*attributes["ngram_counts"], len(items)]
    for size, (start, end) in enumerate(pairwise(starts), 1):
        for first in range(start, end - size + 1, size):
            yield tuple(items[first : first + size])


def _occurrences(row: Sequence[Any], attributes: Any) -> Iterator[tuple[Any, ...]]:
    """Yields the n-grams of a row of all sizes asked for, with all distances allowed between their elements."""
    for size in range(attributes["min_gram_length"], attributes["max_gram_length"] + 1):
        for distance in range(1, attributes["max_skip_count"] + 2 if size > 1 else 2):
            reach = (size - 1) * distance
            for first in range(len(row) - reach):
                yield tuple(row[first : first + reach + 1 : distance])
