"""Where two runs part when names are lost: values are matched by what they are.

A value of the source that the candidate has as well, in any order of elements, is matched. The source's nodes that only
take matched values and make one that is not matched, on the way to a wrong output, are where the two part.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueport.core.trace import TracedNode, TracedRun

Array = NDArray[Any]
RELATIVE = 1e-9
"""Least relative difference of two values, in units of their largest element, that makes them different."""
FOLDED = 1e-6
"""The same where the candidate holds constants that its converter rounded."""


@dataclass(frozen=True)
class Frontier:
    """Where two runs part.

    Attributes:
        source: nodes of the source, in order: what they take is matched, what they make is not.
        candidate: nodes of the candidate of which the same holds.
        region: how many of the source's nodes lie between the matched values and the wrong outputs.
        matched: how many of the source's values the candidate has as well.
        of: how many values the source has on the way to the wrong outputs.
    """

    source: tuple[TracedNode, ...]
    candidate: tuple[TracedNode, ...]
    region: int
    matched: int
    of: int


def find_frontier(good: TracedRun, bad: TracedRun, wrong: Sequence[int], *, rounded: bool = False) -> Frontier:
    """Returns where a candidate parts from its source.

    Args:
        good: a run of the source.
        bad: a run of the candidate on the same inputs.
        wrong: numbers of the outputs that are wrong.
        rounded: the candidate holds constants that were computed in its own type.
    """
    tolerance = FOLDED if rounded else RELATIVE
    ours, theirs = _matched(good, bad, tolerance)
    first, size, count = _parting(good, ours, wrong)
    other, _, _ = _parting(bad, theirs, wrong)
    return Frontier(first, other, size, len(ours & _way(good, wrong)), count)


def _matched(run: TracedRun, other: TracedRun, tolerance: float) -> tuple[frozenset[str], frozenset[str]]:
    """Names of the values of either run that the other has as well, its elements in any order."""
    table: dict[int, list[str]] = {}
    for name, value in other.values.items():
        table.setdefault(value.size, []).append(name)
    sums = {size: np.array([_summary(other.values[n]) for n in names]) for size, names in table.items()}
    mine: set[str] = set()
    theirs: set[str] = set()
    for name, value in run.values.items():
        rows = sums.get(value.size)
        if rows is None:
            continue
        summary = _summary(value)
        scale = max(abs(summary[1]), 1e-300)
        for i in np.nonzero(np.abs(rows - summary).max(axis=1) <= 10 * tolerance * scale)[0]:
            found = table[value.size][i]
            if not (name in mine and found in theirs) and _same_elements(value, other.values[found], tolerance):
                mine.add(name)
                theirs.add(found)
    return frozenset(mine), frozenset(theirs)


def _summary(value: Array) -> Array:
    held = value.astype(np.float64) if value.dtype.kind != "c" else np.abs(value)
    held = np.where(np.isfinite(held), held, 0.0)
    return np.array([held.sum(), np.abs(held).sum()])


def _same_elements(a: Array, b: Array, tolerance: float) -> bool:
    if a.dtype.kind not in "fc":
        return bool(np.array_equal(np.sort(a, axis=None), np.sort(b.astype(a.dtype, copy=False), axis=None)))
    with np.errstate(invalid="ignore", over="ignore"):
        slack = tolerance * float(np.max(np.abs(a), initial=0.0, where=np.isfinite(a)))

        def close(x: Array, y: Array) -> bool:
            return bool(np.isclose(x, y, rtol=tolerance, atol=slack, equal_nan=True).all())

        # Mostly the order is the same; sorting is the dear part.
        return close(a.ravel(), b.ravel()) or close(np.sort(a, axis=None), np.sort(b, axis=None))


def values_before(run: TracedRun, names: Iterable[str]) -> set[str]:
    """Returns these values and all from which they are computed, by name."""
    made = {name: node for node in run.nodes for name in node.outputs}
    waiting = [name for name in names if name]
    seen: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        if name in made:
            waiting += [n for n in made[name].inputs if n]
    return seen


def _way(run: TracedRun, wrong: Sequence[int]) -> set[str]:
    """Names of all values from which a wrong output is computed."""
    return values_before(run, [run.outputs[i] for i in wrong if i < len(run.outputs)])


def _parting(run: TracedRun, matched: frozenset[str], wrong: Sequence[int]) -> tuple[tuple[TracedNode, ...], int, int]:
    """Returns the nodes where a run parts from the other, the size of the region behind, and of the whole way."""
    made = {name: node for node in run.nodes for name in node.outputs}
    waiting = [run.outputs[i] for i in wrong if i < len(run.outputs) and run.outputs[i]]
    region: dict[str, TracedNode] = {}
    seen: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name in seen or name not in made:
            continue
        seen.add(name)
        if name in matched and name not in run.outputs:
            continue
        region[made[name].name] = made[name]
        waiting += [n for n in made[name].inputs if n]
    order = {node.name: number for number, node in enumerate(run.nodes)}
    ours = {name for node in region.values() for name in node.outputs} - matched

    def open_inputs(node: TracedNode) -> bool:
        return any(n in ours and n not in run.constants for n in node.inputs)

    first = [node for node in region.values() if not open_inputs(node) and not set(node.outputs) <= run.constants]
    return tuple(sorted(first, key=lambda n: order[n.name])), len(region), len(_way(run, wrong))
