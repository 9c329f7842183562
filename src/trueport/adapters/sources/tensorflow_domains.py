"""Which integers an input of a TensorFlow function may hold: those that look up rows of a table stay within it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from trueport.adapters.sources.tensorflow_setup import import_tensorflow
from trueport.adapters.sources.tensorflow_source import TensorFlowSource
from trueport.core.domain import Domain, DomainKind

_SAME_VALUES = frozenset({"Identity", "Cast", "Reshape", "ExpandDims", "Squeeze", "Transpose", "StopGradient"})
_CHOICES = frozenset({"Select", "SelectV2"})
_SUMS = {"AddV2": 1, "Add": 1, "Sub": -1}
_TABLES = {"GatherV2": 1, "Gather": 1, "ResourceGather": 1}
"""Operators that read rows of their first operand, and which operand holds the numbers of the rows."""
_MOST_STEPS = 10_000
_Use = tuple[int, int, int]
"""Rows of a table, and the least and the largest number that was added to the values that name its rows."""


def input_domains(source: TensorFlowSource) -> dict[str, Domain]:
    """Returns the domains of integer inputs that are indices of tables of a known size, by input."""
    graph = source.function.graph
    variables = {handle_key(v.handle): v for v in source.function.graph.variables}
    outer = {inner.name: captured for captured, inner in graph.captures}
    domains = {}
    for info in source.inputs:
        if info.dtype.kind not in "iu":
            continue
        uses = [u for u in _uses(graph.get_tensor_by_name(info.tensor), outer, variables) if u is not None]
        low = max((-int(least) for _, least, _ in uses), default=0)
        high = min((rows - 1 - int(largest) for rows, _, largest in uses), default=-1)
        low = max(low, int(np.iinfo(info.dtype).min))
        if uses and low <= high:
            domains[info.name] = Domain(DomainKind.INDEX, low=float(low), high=float(high))
    return domains


def handle_key(handle: Any) -> Any:
    """Returns what identifies a variable's handle, by whichever tensor it is passed."""
    return handle.ref() if hasattr(handle, "ref") else handle


def _uses(tensor: Any, outer: dict[str, Any], variables: dict[Any, Any]) -> Iterator[_Use | None]:
    """Yields the tables that the values of a tensor are looked up in; None for one of unknown size.

    Values to which something unknown was added are not followed, nor is a choice of shifted ones: Keras counts rows
    from the end where an index is negative, and only there.
    """
    pending: list[tuple[Any, int, int]] = [(tensor, 0, 0)]
    seen = {(tensor.name, 0, 0)}
    while pending and len(seen) < _MOST_STEPS:
        current, least, largest = pending.pop()
        for node in current.consumers():
            place = _TABLES.get(node.type)
            if place is not None and node.inputs[place] is current:
                rows = _rows(node, outer, variables)
                yield None if rows is None else (rows, least, largest)
            added = _added(node, current, shifted=bool(least or largest))
            if added is None:
                continue
            for out in node.outputs:
                step = (out, least + added[0], largest + added[1])
                if out.dtype.is_integer and (out.name, *step[1:]) not in seen:
                    seen.add((out.name, *step[1:]))
                    pending.append(step)


def _added(node: Any, tensor: Any, *, shifted: bool) -> tuple[int, int] | None:
    """Returns the least and the largest number that a node adds to a tensor's values; None where that is unknown."""
    if node.type in _SAME_VALUES:
        return (0, 0) if node.inputs[0] is tensor else None
    if node.type in _CHOICES:
        return None if shifted else (0, 0)
    sign = _SUMS.get(node.type)
    if sign is None or (sign < 0 and node.inputs[0] is not tensor):
        return None
    other = node.inputs[1] if node.inputs[0] is tensor else node.inputs[0]
    known = import_tensorflow().get_static_value(other)
    if known is None or known.size == 0:
        return None
    ends = sign * int(known.min()), sign * int(known.max())
    return min(ends), max(ends)


def _rows(node: Any, outer: dict[str, Any], variables: dict[Any, Any]) -> int | None:
    table = node.inputs[0]
    if node.type == "ResourceGather":
        captured = outer.get(table.name)
        variable = variables.get(handle_key(captured)) if captured is not None else None
        return int(variable.shape[0]) if variable is not None else None
    axis = 0
    if node.type == "GatherV2":
        given = node.inputs[2].op
        if given.type != "Const":
            return None
        from tensorflow import make_ndarray

        axis = int(make_ndarray(given.get_attr("value")))
    return table.shape[axis] if table.shape.rank is not None else None
