"""What the step changed that broke a model: named, beside the place that was found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from trueport.bisect.road import Step
from trueport.core.result import NodeRef
from trueport.core.taxonomy import Role, Stage
from trueport.locate.places import Place
from trueport.onnxgraph.changes import ChangedNode, Changes, Difference, changes

if TYPE_CHECKING:
    from trueport.api.walk import Walk

MOST_LINES = 12
"""So many lines of what was removed, added or changed are kept as evidence."""
_WIRING = frozenset({"Constant", "Identity"})
"""Operators that hold or hand on a value."""
_BETWEEN = (Stage.OPTIMIZATION, Stage.EXPORT)
"""Stages that make an ONNX model of an ONNX model."""


def with_changes(places: Sequence[Place], walk: Walk, step: Step) -> list[Place]:
    """Returns the places with what the step changed; where there is none, the changes are the place."""
    right, wrong = walk.right, walk.wrong
    if right is None or wrong is None or right.model is None or wrong.model is None or step.stage not in _BETWEEN:
        return list(places)
    found = changes(right.model, wrong.model)
    if found.nothing:
        return list(places)
    evidence = evidence_of(found) | {"step": step.name}
    told = _told(found, step)
    if not places:
        return [Place(told, nodes_of(found), evidence | {"how": "compared with what went in"})]
    return [
        replace(place, message=f"{place.message}; {told}" if number == 0 else place.message,
                evidence=place.evidence | {"changed": evidence})
        for number, place in enumerate(places)
    ]  # fmt: skip


def evidence_of(found: Changes) -> dict[str, Any]:
    """Returns what was changed as JSON values, with the number of lines left out."""
    lines = {
        "removed": [n.text for n in found.removed],
        "added": [n.text for n in found.added],
        "differs": [_line(d) for d in found.differences],
    }
    shown: dict[str, Any] = {name: values[:MOST_LINES] for name, values in lines.items() if values}
    left_out = sum(max(len(values) - MOST_LINES, 0) for values in lines.values())
    return shown | ({"left_out": left_out} if left_out else {}) | {"removed_operators": operators_of(found)[:50]}


def operators_of(found: Changes) -> list[str]:
    """Returns the operators that were removed, in order, without those that only hold or hand on a value."""
    return [n.operator for n in found.removed if n.operator not in _WIRING]


def outputs_of(found: Changes) -> frozenset[str]:
    """Returns the names of the values that removed nodes of the main graph made."""
    return frozenset(name for n in found.removed if not n.body for name in n.outputs if name)


def nodes_of(found: Changes) -> tuple[NodeRef, ...]:
    """Returns the nodes that were removed, then those that came in their place."""
    return (*_refs(found.removed, Role.INTRODUCES)[:10], *_refs(found.added, Role.CONCERNED)[:10])


def _refs(nodes: Sequence[ChangedNode], role: Role) -> list[NodeRef]:
    shown = [n for n in nodes if n.operator not in _WIRING]
    return [NodeRef(n.name or next(iter(n.outputs), ""), n.operator, role=role) for n in shown]


def _line(difference: Difference) -> str:
    distance = "" if difference.distance is None else f" (largest distance {difference.distance:.3g})"
    where = f" in {difference.body}" if difference.body else ""
    before, after = difference.before or "nothing", difference.after or "nothing"
    values = f"{before} became {after}" if before != after else "other values"
    return f"{difference.what} '{difference.name}'{where}: {values}{distance}"


def _told(found: Changes, step: Step) -> str:
    graph = found.removed or found.added
    if found.differences and (step.stage is Stage.EXPORT or not graph):
        more = f" (and {len(found.differences) - 1} more)" if len(found.differences) > 1 else ""
        return f"{step.name} changed {_line(found.differences[0])}{more}"
    old = ", ".join(n.operator for n in found.removed[:4]) or "nothing"
    new = ", ".join(n.operator for n in found.added[:4]) or "nothing"
    return f"'{step.name}' replaced {old} by {new}"
