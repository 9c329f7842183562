"""Sequences (held as lists) and optional values (held as the value, or None)."""

from __future__ import annotations

from typing import Any

import numpy as np

from trueport.adapters.float64.onnx.dtypes import Array
from trueport.adapters.float64.onnx.registry import Call, kernel


@kernel("SequenceConstruct", selects=True)
def construct(call: Call, *values: Array) -> list[Array]:
    """Returns a sequence of the inputs."""
    del call
    return list(values)


@kernel("SequenceEmpty", selects=True)
def empty(call: Call) -> list[Array]:
    """Returns an empty sequence."""
    del call
    return []


@kernel("SequenceAt", selects=True)
def at(call: Call, sequence: list[Array], position: Array) -> Array:
    """Returns one element."""
    del call
    return sequence[int(position.reshape(()))]


@kernel("SequenceInsert", selects=True)
def insert(call: Call, sequence: list[Array], value: Array, position: Array | None = None) -> list[Array]:
    """Returns the sequence with a value put in front of a position, by default at the end."""
    del call
    index = len(sequence) if position is None else int(position.reshape(()))
    if not -len(sequence) <= index <= len(sequence):
        raise IndexError(f"position {index} in a sequence of {len(sequence)}")
    result = list(sequence)
    result.insert(index, value)
    return result


@kernel("SequenceErase", selects=True)
def erase(call: Call, sequence: list[Array], position: Array | None = None) -> list[Array]:
    """Returns the sequence without one element, by default the last."""
    del call
    result = list(sequence)
    del result[-1 if position is None else int(position.reshape(()))]
    return result


@kernel("SequenceLength", selects=True)
def length(call: Call, sequence: list[Array]) -> Array:
    """Returns the number of elements."""
    del call
    return np.asarray(len(sequence), dtype=np.int64)


@kernel("ConcatFromSequence", selects=True)
def concat(call: Call, sequence: list[Array]) -> Array:
    """Returns the elements joined along an axis, a new one if asked for."""
    axis = call.attributes["axis"]
    return np.stack(sequence, axis) if call.attributes["new_axis"] else np.concatenate(sequence, axis)


@kernel("SplitToSequence", selects=True)
def split(call: Call, x: Array, sizes: Array | None = None) -> list[Array]:
    """Returns x cut along an axis into pieces of the given size or sizes, by default single slices."""
    axis = call.attributes["axis"]
    total = x.shape[axis]
    step = 1 if sizes is None else int(sizes.reshape(-1)[0]) if sizes.ndim == 0 else 0
    if sizes is not None and not step and int(sizes.sum()) != total:
        raise ValueError(f"parts {np.asarray(sizes).tolist()} of a dimension of size {total}")
    bounds = np.arange(step, total, step) if step else np.cumsum(np.asarray(sizes))[:-1]
    pieces = np.split(x, bounds, axis)
    if sizes is None and not call.attributes["keepdims"]:
        return [np.squeeze(piece, axis) for piece in pieces]
    return list(pieces)


@kernel("Optional", selects=True)
def optional(call: Call, value: Any = None) -> Any:
    """Returns the value as an optional one."""
    del call
    return value


@kernel("OptionalHasElement", selects=True)
def has_element(call: Call, value: Any = None) -> Array:
    """Returns whether there is a value."""
    del call
    return np.asarray(value is not None)


@kernel("OptionalGetElement", selects=True)
def get_element(call: Call, value: Any) -> Any:
    """Returns the value of an optional one."""
    del call
    if value is None:
        raise ValueError("the optional value is empty")
    return value
