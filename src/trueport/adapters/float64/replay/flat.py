"""Outputs as a flat list of arrays: the elements of a sequence one by one, and something for what is not there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def flat(values: Sequence[Any]) -> list[Array]:
    """Returns the arrays of outputs; a sequence gives its length and its elements, an absent optional one text."""
    return [array for value in values for array in _opened(value)]


def flat_names(names: Sequence[str], values: Sequence[Any]) -> list[str]:
    """Returns one name for each array of `flat(values)`."""
    result = []
    for name, value in zip(names, values, strict=True):
        if isinstance(value, list | tuple):
            result += [f"{name}.length", *flat_names([f"{name}[{i}]" for i in range(len(value))], value)]
        else:
            result.append(name)
    return result


def flat_types(values: Sequence[Any], types: Sequence[str]) -> list[str]:
    """Returns one declared element type for each array of `flat(values)`; '' where nothing is declared."""
    result = []
    for value, dtype in zip(values, types, strict=True):
        if isinstance(value, list | tuple):
            result += ["int64", *flat_types(value, [dtype] * len(value))]
        else:
            result.append(dtype if value is not None else "")
    return result


def _opened(value: Any) -> list[Array]:
    if isinstance(value, list | tuple):
        return [np.asarray(len(value), np.int64), *(array for item in value for array in _opened(item))]
    if value is None:
        return [np.asarray("absent", object)]
    array = np.asarray(value)
    return [array.astype(object) if array.dtype.kind in "US" else array]
