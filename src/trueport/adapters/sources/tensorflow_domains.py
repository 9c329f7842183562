"""Which integers an input of a TensorFlow function may hold: those that look up rows of a table stay within it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from trueport.adapters.sources.tensorflow_source import TensorFlowSource
from trueport.core.domain import Domain, DomainKind

_SAME_VALUES = frozenset(
    {"Identity", "Cast", "Reshape", "ExpandDims", "Squeeze", "Transpose", "StopGradient", "SelectV2", "AddV2"}
)
_TABLES = {"GatherV2": 1, "Gather": 1, "ResourceGather": 1}
"""Operators that read rows of their first operand, and which operand holds the numbers of the rows."""


def input_domains(source: TensorFlowSource) -> dict[str, Domain]:
    """Returns the domains of integer inputs that are indices of tables of a known size, by input."""
    graph = source.function.graph
    variables = {handle_key(v.handle): v for v in source.function.graph.variables}
    outer = {inner.name: captured for captured, inner in graph.captures}
    domains = {}
    for info in source.inputs:
        if info.dtype.kind not in "iu":
            continue
        sizes = [s for s in _table_sizes(graph.get_tensor_by_name(info.tensor), outer, variables) if s]
        if sizes:
            domains[info.name] = Domain(DomainKind.INDEX, low=0.0, high=float(min(sizes) - 1))
    return domains


def handle_key(handle: Any) -> Any:
    """Returns what identifies a variable's handle, by whichever tensor it is passed."""
    return handle.ref() if hasattr(handle, "ref") else handle


def _table_sizes(tensor: Any, outer: dict[str, Any], variables: dict[Any, Any]) -> Iterator[int | None]:
    """Yields the number of rows of every table that the values of a tensor are looked up in."""
    pending, seen = [tensor], {tensor.name}
    while pending:
        current = pending.pop()
        for node in current.consumers():
            place = _TABLES.get(node.type)
            if place is not None and node.inputs[place] is current:
                yield _rows(node, outer, variables)
            if node.type in _SAME_VALUES:
                fresh = [out for out in node.outputs if out.name not in seen and out.dtype.is_integer]
                seen.update(out.name for out in fresh)
                pending += fresh


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
