"""What the step changed that broke a model: named, beside the place that was found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from trueport.bisect.road import Step
from trueport.core.result import NodeRef
from trueport.core.taxonomy import Role, Stage
from trueport.locate.places import Place
from trueport.onnxgraph.changes import Changes, changes, node_text

if TYPE_CHECKING:
    from trueport.api.walk import Walk

MOST_LINES = 12
"""So many lines of what was removed, added or changed are kept as evidence."""
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
        "removed": [node_text(n) for n in found.removed],
        "added": [node_text(n) for n in found.added],
        "tensors": list(found.tensors),
        "interface": list(found.interface),
    }
    shown: dict[str, Any] = {name: values[:MOST_LINES] for name, values in lines.items() if values}
    left_out = sum(max(len(values) - MOST_LINES, 0) for values in lines.values())
    return shown | ({"left_out": left_out} if left_out else {}) | {"removed_sequence": list(found.sequence)[:50]}


def nodes_of(found: Changes) -> tuple[NodeRef, ...]:
    """Returns the nodes that were removed, then those that came in their place."""
    removed = [NodeRef(_label(n), n.op_type, role=Role.INTRODUCES) for n in found.removed]
    added = [NodeRef(_label(n), n.op_type, role=Role.CONCERNED) for n in found.added]
    return tuple((removed + added)[:20])


def _label(node: Any) -> str:
    return node.name or next((name for name in node.output if name), "")


def _told(found: Changes, step: Step) -> str:
    if found.interface:
        return f"{step.name} changed the {found.interface[0]}"
    differing = [t for t in found.tensors if "differ" in t or "became" in t]
    if step.stage is Stage.EXPORT and differing:
        more = f" (and {len(differing) - 1} more)" if len(differing) > 1 else ""
        return f"{step.name} changed {differing[0]}{more}"
    if found.removed or found.added:
        old = ", ".join(n.op_type for n in found.removed[:4]) or "nothing"
        new = ", ".join(n.op_type for n in found.added[:4]) or "nothing"
        return f"'{step.name}' replaced {old} by {new}"
    return f"'{step.name}' changed {found.tensors[0]}"
