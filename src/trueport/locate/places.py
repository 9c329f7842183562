"""What a locator answers: a place, with what it rests on."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from trueport.core.result import NodeRef
from trueport.core.taxonomy import Role
from trueport.core.trace import TracedNode, TracedRun
from trueport.locate.forced import Faults
from trueport.locate.frontier import Frontier
from trueport.locate.suspects import ordered
from trueport.oracle.compare import LARGEST_SCORE, Comparison, describe

GIVEN = "given the source's own values"
MOST_IN_A_SENTENCE = 5
MOST_NODES = 20
"""So many nodes of one place are listed."""


@dataclass(frozen=True)
class Place:
    """Where an error is introduced.

    Attributes:
        message: one sentence.
        nodes: those that introduce it first, then what they were made from or into, then those that only pass it on.
        evidence: JSON values.
    """

    message: str
    nodes: tuple[NodeRef, ...] = ()
    evidence: dict[str, Any] = field(default_factory=dict)


def of_faults(faults: Faults, good: TracedRun, bad: Sequence[TracedNode]) -> list[Place]:
    """Returns one place for each fault that a forced evaluation found, the gravest first."""
    makers = {name: node for node in good.nodes for name in node.outputs}
    made = {name: node for node in bad for name in node.outputs}
    places = []
    for error, severity in zip(faults.faults, faults.severity, strict=True):
        source = _group(error.pair, makers, faults.cut.values())
        group = _group(error.value, made, faults.cut)
        c = error.comparison
        chain = _chain(source) or error.pair
        message = f"{chain}, converted to {_chain(group, short=True)}: {difference(c)}, {GIVEN}"
        evidence = {
            "how": "forced", "value": error.value, "local_score": _finite(c.score), "severity": _finite(severity),
            "expected": c.reference, "got": c.candidate, "index": list(c.index), "wrong_elements": c.wrong,
            "differs": c.kind, "source_value": describe(good.values[error.pair]), "made": describe(error.computed),
            "replacing_it_cures": faults.cured, "values_judged": faults.judged,
            "values_left_out": good.left_out,
            "sequence": [n.operator for n in source], "converted_to": [n.operator for n in group],
        }  # fmt: skip
        first, rest = ordered(source or group, good.values[error.pair], error.computed)
        nodes = _refs(first, Role.INTRODUCES, c.score) + _refs(rest, Role.CONCERNED, c.score)
        nodes += _refs(group[::-1], Role.CONCERNED, c.score) if source else []
        places.append(Place(message, tuple(nodes[:MOST_NODES]), evidence))
    return places


def difference(c: Comparison) -> str:
    """Returns what was expected and what came, for a sentence."""
    return c.detail or f"expected {c.reference}, got {c.candidate} at {list(c.index)} ({c.wrong} elements differ)"


def of_frontier(frontier: Frontier) -> list[Place]:
    """Returns the place at which two runs part; none where they do not part anywhere."""
    if not frontier.source and not frontier.candidate:
        return []
    named = ", ".join(_named(n) for n in frontier.source[:3]) or "an operator that the source does not have"
    message = (
        f"{named}: what it takes is found on both sides, what it makes is not ({frontier.matched} of the "
        f"{frontier.of} values on the way to the wrong outputs are found)"
    )
    evidence = {
        "how": "matched by value", "matched": frontier.matched, "of": frontier.of, "behind": frontier.region,
        "sequence": [n.operator for n in frontier.source],
    }  # fmt: skip
    nodes = _refs(frontier.source, Role.INTRODUCES, None) + _refs(
        frontier.candidate, Role.CONCERNED if frontier.source else Role.INTRODUCES, None
    )
    return [Place(message, tuple(nodes[:MOST_NODES]), evidence)]


def _group(value: str, made: Mapping[str, TracedNode], cut: Collection[str]) -> list[TracedNode]:
    """The nodes between the cuts and a value, in the order in which they are computed."""
    cuts = frozenset(cut)
    found: list[TracedNode] = []
    seen: set[str] = set()
    stack = [(value, False)]
    while stack:
        name, done = stack.pop()
        node = made.get(name)
        if node is None or (name in cuts and name != value):
            continue
        if done:
            found.append(node)
        elif node.name not in seen:
            seen.add(node.name)
            stack.append((name, True))
            stack += [(n, False) for n in reversed(node.inputs) if n]
    return found


def _chain(nodes: Sequence[TracedNode], *, short: bool = False) -> str:
    """Names the nodes of a group, the last one with its place in the model."""
    if not nodes:
        return ""
    shown = [n.operator for n in nodes[:-1]][-MOST_IN_A_SENTENCE:]
    left_out = "... -> " if len(nodes) - 1 > len(shown) else ""
    last = nodes[-1].operator if short else _named(nodes[-1])
    return left_out + " -> ".join([*shown, last])


def _named(node: TracedNode) -> str:
    where = " ".join(part for part in (node.source, f"in {node.module}" if node.module else "") if part)
    return f"{node.operator} '{node.name}'" + (f" ({where})" if where else "")


def _refs(nodes: Sequence[TracedNode], role: Role, score: float | None) -> list[NodeRef]:
    held = None if score is None else _finite(score)
    return [NodeRef(n.name, n.operator, n.module, n.source, role, held) for n in nodes]


def _finite(score: float) -> float:
    return min(score, LARGEST_SCORE)
