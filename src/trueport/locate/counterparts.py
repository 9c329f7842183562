"""Which of the nodes where two runs part is the one that became wrong.

An operator of the source may have no counterpart: it is part of what the converter made one of. So the first node of
the candidate that parts from the source is asked for its counterpart: the nearest value of the source that has its
shape. What that is computed from belongs to it; what has no part in it is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from trueport.core.trace import TracedNode, TracedRun
from trueport.locate.frontier import Frontier, values_before

NEAR = 8
"""So many values behind the place where two runs part are asked."""


def with_counterparts(frontier: Frontier, good: TracedRun, bad: TracedRun) -> Frontier:
    """Returns the frontier with the source's counterparts first, and without what is no part of them.

    It stays as it is where no node of the candidate has a counterpart.
    """
    near = values_behind(good, frontier.source, NEAR)
    makers = {name: node for node in good.nodes for name in node.outputs}
    first: list[TracedNode] = []
    parted: list[TracedNode] = []
    for node in frontier.candidate:
        shapes = {(bad.values[o].shape, bad.values[o].dtype.kind) for o in node.outputs if o in bad.values}
        same = [n for n in near if (good.values[n].shape, good.values[n].dtype.kind) in shapes]
        fresh = [n for n in same if makers[n] not in first]
        if shapes and fresh:
            first.append(makers[fresh[0]])
            parted.append(node)
    if not first:
        return frontier
    before = values_before(good, [name for node in first for name in node.inputs])
    names = {n.name for n in good.nodes if not before.isdisjoint(n.outputs)}
    parts = [n for n in frontier.source if n.name in names and n not in first]
    return replace(frontier, source=(*first, *parts), candidate=tuple(parted))


def values_behind(run: TracedRun, nodes: Sequence[TracedNode], most: int) -> list[str]:
    """Returns the names of the values that nodes make, then of those computed from them, the nearest first."""
    takers: dict[str, list[TracedNode]] = {}
    for node in run.nodes:
        for name in node.inputs:
            takers.setdefault(name, []).append(node)
    waiting, seen = list(nodes), {n.name for n in nodes}
    found: list[str] = []
    while waiting and len(found) < most:
        node = waiting.pop(0)
        found += [name for name in node.outputs if name in run.values]
        for name in node.outputs:
            further = [n for n in takers.get(name, ()) if n.name not in seen]
            seen.update(n.name for n in further)
            waiting += further
    return found[:most]
