"""Forced evaluation: every node of a converted graph is fed the source's own values and judged on them.

Values that both graphs share are cuts. At a cut the candidate's value, computed from cuts only, is compared with the
source's and then replaced by it, so that an error shows where it is made and nowhere else. What lies between two cuts
is judged as a group.

A local error need not be a fault: a converter may move a factor from one node to the next, so that both differ and the
two together are right. So each error is let through while all others stay replaced. One that reaches neither an output
nor another error is harmless; where the value of another error becomes right, the two compensate each other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueport.core.trace import Follow, See, TracedNode, TracedRun
from trueport.oracle.compare import Comparison, ReferenceOutput, compare_meaning
from trueport.oracle.floor import elementwise_floor
from trueport.oracle.thresholds import THRESHOLDS

Array = NDArray[Any]
Score = Callable[[Sequence[Any]], float]
"""Outputs of the candidate -> largest score against the source's; more than `THRESHOLDS.meaning` is wrong."""

DRAWS = 6
"""Noisy forced runs behind the floor of a local judgement."""
SAME = 1e-9
"""Relative difference up to which a value is called unchanged when an error upstream is let through."""
MOST_NEUTRALIZED = 40
"""So many local errors, the worst, are tried for what they do to the outputs."""


@dataclass(frozen=True, eq=False)
class LocalError:
    """A value that differs from the source's although everything that it was computed from is the source's.

    Attributes:
        node: of the candidate, which made the value.
        value: its name in the candidate.
        pair: its name in the source.
        comparison: with the source's value.
        computed: the value.
        order: place among the candidate's nodes.
    """

    node: TracedNode
    value: str
    pair: str
    comparison: Comparison
    computed: Array
    order: int


@dataclass(frozen=True)
class Faults:
    """Where errors are introduced.

    Attributes:
        faults: local errors that make outputs wrong, the gravest first.
        severity: of each, the score of the outputs with all others neutralized, or of its value where that hides it.
        cured: replacing the values of all faults makes the outputs right.
        harmless: local errors that make no output wrong.
        judged: values that were compared on the source's own values.
        cut: the candidate's values at which it was cut -> the source's values there.
    """

    faults: tuple[LocalError, ...] = ()
    severity: tuple[float, ...] = ()
    cured: bool = False
    harmless: tuple[LocalError, ...] = ()
    judged: int = 0
    cut: Mapping[str, str] = field(default_factory=dict)


def find_faults(
    follow: Follow, good: TracedRun, pairs: Mapping[str, str], score: Score, *, draws: int = DRAWS
) -> Faults:
    """Returns where a candidate introduces the errors that its outputs show.

    Args:
        follow: runs the candidate.
        good: a run of the source on the same inputs, with floors.
        pairs: value of the candidate -> value of the source that it stands for.
        score: judges outputs.
        draws: noisy runs behind each local floor.
    """
    errors, judged, cut = local_errors(follow, good, pairs, draws=draws)
    if not errors:
        return Faults(judged=judged, cut=cut)
    tried = sorted(errors, key=lambda e: (-e.comparison.score, e.order))[:MOST_NEUTRALIZED]
    if not _right(follow, good, tried, score):
        ordered = tuple(sorted(tried, key=lambda e: e.order))
        return Faults(ordered, tuple(e.comparison.score for e in ordered), False, (), judged, cut)
    needed = list(tried)
    for error in sorted(tried, key=lambda e: e.order):
        if error in needed:
            needed = _without_harmless(follow, good, needed, error, score)
    severity = {id(e): _severity(follow, good, needed, e, score) for e in needed}
    faults = sorted(needed, key=lambda e: (-severity[id(e)], e.order))
    harmless = tuple(e for e in errors if e not in needed)
    return Faults(tuple(faults), tuple(severity[id(e)] for e in faults), True, harmless, judged, cut)


def _without_harmless(
    follow: Follow, good: TracedRun, needed: list[LocalError], error: LocalError, score: Score
) -> list[LocalError]:
    """Returns the errors without this one, and without those that it compensates, where that makes nothing wrong."""
    others = [e for e in needed if e is not error]
    reached: dict[str, Array] = {}
    if _score(follow, good, others, score, reached) > THRESHOLDS.meaning:
        return needed
    moved = [e for e in others if e.value in reached and not _same(reached[e.value], e.computed)]
    if all(_same(reached[e.value], good.values[e.pair]) for e in moved):
        return [e for e in others if e not in moved]
    return needed


def _severity(follow: Follow, good: TracedRun, needed: Sequence[LocalError], error: LocalError, score: Score) -> float:
    shown = _score(follow, good, [e for e in needed if e is not error], score)
    return shown if shown > THRESHOLDS.meaning else error.comparison.score


def _same(a: Array, b: Array) -> bool:
    """Whether two values are the same beside what float64 rounds, with some amplification."""
    if a.shape != b.shape:
        return False
    if a.dtype.kind not in "fc":
        return bool(np.array_equal(a, b))
    with np.errstate(invalid="ignore", over="ignore"):
        largest = float(np.max(np.abs(b), initial=0.0, where=np.isfinite(b)))
        return bool(np.isclose(a, b, rtol=SAME, atol=SAME * largest, equal_nan=True).all())


def local_errors(
    follow: Follow, good: TracedRun, pairs: Mapping[str, str], *, draws: int = DRAWS
) -> tuple[list[LocalError], int, dict[str, str]]:
    """Returns the errors that nodes make on the source's own values, how many values were judged, and the cut."""
    usable = {name: pair for name, pair in pairs.items() if pair in good.values}
    try:
        forced = _Forced(good, usable)
        follow(forced.main, None)
    except Exception:  # noqa: BLE001 - a value of another shape may not fit what follows; those are no cuts then
        shapes = _shapes(follow)
        usable = {n: p for n, p in usable.items() if shapes.get(n) == good.values[p].shape}
        forced = _Forced(good, usable)
        follow(forced.main, None)
    if forced.suspects:
        for number in range(draws):
            follow(forced.noisy(number), number)
    return forced.errors(), forced.judged, {name: usable[name] for name in sorted(forced.seen)}


class _Forced:
    """Compares and replaces at the cuts; keeps only what looks wrong."""

    def __init__(self, good: TracedRun, pairs: Mapping[str, str]) -> None:
        self.suspects: dict[str, tuple[TracedNode, Array, int]] = {}
        self.judged = 0
        self.seen: set[str] = set()
        self._good = good
        self._pairs = pairs
        self._runs: dict[str, list[Array]] = {}
        self._order = 0

    def main(self, node: TracedNode, outputs: list[Any]) -> list[Any]:
        self._order += 1
        result = list(outputs)
        for place, (name, value) in enumerate(zip(node.outputs, outputs, strict=False)):
            pair = self._pairs.get(name)
            if pair is None or not isinstance(value, np.ndarray):
                continue
            want = self._good.values[pair]
            if (value.dtype.kind in "fc") != (want.dtype.kind in "fc"):
                continue
            self.judged += 1
            self.seen.add(name)
            if self._differs(pair, want, value):
                self.suspects[name] = (node, value, self._order)
            result[place] = want.astype(value.dtype, copy=False)
        return result

    def noisy(self, number: int) -> See:
        """Returns what sees a noisy run: the source's values come with the noise of float64."""
        rng = np.random.default_rng([number, 0x6C6F])

        def see(node: TracedNode, outputs: list[Any]) -> list[Any]:
            result = list(outputs)
            for place, (name, value) in enumerate(zip(node.outputs, outputs, strict=False)):
                if name not in self.seen or not isinstance(value, np.ndarray):
                    continue
                if name in self.suspects:
                    self._runs.setdefault(name, []).append(value)
                want = self._good.values[self._pairs[name]]
                if want.dtype.kind in "fc":
                    want = want * (1 + 2.0**-52 * rng.standard_normal(want.shape))
                result[place] = want.astype(value.dtype, copy=False)
            return result

        return see

    def _differs(self, pair: str, want: Array, value: Array) -> bool:
        return compare_meaning(self._reference(pair, want), _as(value, want)).different

    def _reference(self, pair: str, want: Array, unstable: Array | None = None) -> ReferenceOutput:
        zero = np.zeros(want.shape)
        floor = self._good.floors.get(pair, zero)
        unstable = np.zeros(want.shape, bool) if unstable is None else unstable
        return ReferenceOutput(pair, want.dtype.name, want, floor, floor, unstable, 0)

    def errors(self) -> list[LocalError]:
        """Returns the suspects that their own noise does not explain."""
        found = []
        for name, (node, value, order) in self.suspects.items():
            pair = self._pairs[name]
            want = self._good.values[pair]
            runs = [r for r in self._runs.get(name, []) if r.shape == value.shape]
            floor = elementwise_floor(value, runs) if value.dtype.kind in "fc" and runs else None
            unstable = None
            if value.dtype.kind not in "fc" and runs and value.shape == want.shape:
                unstable = np.logical_or.reduce([r != value for r in runs])
            compared = compare_meaning(self._reference(pair, want, unstable), _as(value, want), extra_floor=floor)
            if compared.different:
                found.append(LocalError(node, name, pair, compared, value, order))
        return found


def _as(value: Array, want: Array) -> Array:
    """An integer may be held in another integer type on the other side; what counts here is its value."""
    if value.dtype != want.dtype and value.dtype.kind in "biu" and want.dtype.kind in "biu":
        return value.astype(want.dtype)
    return value


def neutralized(good: TracedRun, errors: Sequence[LocalError], reached: dict[str, Array] | None = None) -> See:
    """Returns what replaces the values of these errors by the source's and leaves everything else alone.

    Args:
        good: with the source's values.
        errors: that are neutralized.
        reached: receives the values that were replaced.
    """
    pairs = {e.value: e.pair for e in errors}

    def see(node: TracedNode, outputs: list[Any]) -> list[Any]:
        result = list(outputs)
        for place, (name, value) in enumerate(zip(node.outputs, outputs, strict=False)):
            if name in pairs:
                if reached is not None:
                    reached[name] = value
                result[place] = good.values[pairs[name]].astype(value.dtype, copy=False)
        return result

    return see


def _score(
    follow: Follow,
    good: TracedRun,
    errors: Sequence[LocalError],
    score: Score,
    reached: dict[str, Array] | None = None,
) -> float:
    try:
        return score(follow(neutralized(good, errors, reached), None))
    except Exception:  # noqa: BLE001 - a graph that no longer runs is as wrong as can be
        return float("inf")


def _right(follow: Follow, good: TracedRun, errors: Sequence[LocalError], score: Score) -> bool:
    return _score(follow, good, errors, score) <= THRESHOLDS.meaning


def _shapes(follow: Follow) -> dict[str, tuple[int, ...]]:
    shapes: dict[str, tuple[int, ...]] = {}

    def see(node: TracedNode, outputs: list[Any]) -> list[Any]:
        shapes.update({n: np.shape(v) for n, v in zip(node.outputs, outputs, strict=False)})
        return outputs

    follow(see, None)
    return shapes
