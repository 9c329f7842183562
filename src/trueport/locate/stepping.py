"""Beyond the first fault where names are lost: a place is repaired, and the values behind it are found again.

Behind a fault no value of the candidate is one of the source's, so that matching by value ends there. The place where
the two part is paired by trying: the source's value is put into the candidate for a value of the same shape near that
place. Where it belongs, the values behind it become those of the source, up to the next fault.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from trueport.core.trace import Follow, TracedNode, TracedRun
from trueport.locate.counterparts import values_behind
from trueport.locate.frontier import find_frontier

Array = NDArray[Any]
MOST_FAULTS = 6
"""So many places are repaired."""
MOST_TRIES = 60
"""So many runs are tried for one place."""
NEAR_SOURCE, NEAR_CANDIDATE = 6, 16
"""So many values behind the place where two runs part are tried on either side."""


class Watcher(Protocol):
    """Pairs the values of one run with the source's."""

    def see(self, node: TracedNode, outputs: list[Any]) -> list[Any]:
        """Takes note of a node and leaves its outputs alone."""

    def pairs(self) -> dict[str, str]:
        """Returns value of the candidate -> value of the source."""


def stepped_pairs(
    follow: Follow,
    good: TracedRun,
    bad: TracedRun,
    watcher: Callable[[], Watcher],
    wrong: Sequence[int],
    right: Callable[[Sequence[Any]], bool],
) -> dict[str, str]:
    """Returns value of the candidate -> value of the source, also behind faults.

    Args:
        follow: runs the candidate.
        good: a run of the source on the same inputs.
        bad: a run of the candidate.
        watcher: makes what pairs the values of one run.
        wrong: numbers of the wrong outputs.
        right: whether outputs of the candidate are right.
    """
    search = _Search(follow, good, bad, watcher, wrong)
    repaired: dict[str, str] = {}
    for _ in range(MOST_FAULTS):
        pairs, outputs, run = search.run(repaired)
        if right(outputs):
            return pairs
        step = search.step(run, pairs, repaired, right)
        if step is None:
            return pairs
        repaired |= step
    return search.run(repaired)[0]


class _Search:
    def __init__(
        self,
        follow: Follow,
        good: TracedRun,
        bad: TracedRun,
        watcher: Callable[[], Watcher],
        wrong: Sequence[int],
    ) -> None:
        self._follow = follow
        self._good = good
        self._bad = bad
        self._watcher = watcher
        self._wrong = wrong

    def run(self, repaired: Mapping[str, str]) -> tuple[dict[str, str], list[Any], TracedRun]:
        """Returns pairs, outputs and values of a run with the source's values at the repaired places."""
        values: dict[str, Array] = {}
        watcher = self._watcher()

        def see(node: TracedNode, outputs: list[Any]) -> list[Any]:
            result = list(outputs)
            for place, (name, value) in enumerate(zip(node.outputs, outputs, strict=False)):
                if name in repaired and isinstance(value, np.ndarray):
                    result[place] = self._good.values[repaired[name]].astype(value.dtype, copy=False)
                if name in self._bad.values and isinstance(result[place], np.ndarray):
                    values[name] = result[place]
            watcher.see(node, result)
            return result

        outputs = self._follow(see, None)
        run = TracedRun(self._bad.nodes, values, {}, self._bad.outputs, self._bad.constants)
        return {**watcher.pairs(), **repaired}, outputs, run

    def step(
        self,
        run: TracedRun,
        pairs: Mapping[str, str],
        repaired: Mapping[str, str],
        right: Callable[[Sequence[Any]], bool],
    ) -> dict[str, str] | None:
        """Returns the pair behind which most values are the source's.

        A value behind the fault may make the outputs right as well, but has fewer values behind it.
        """
        best: tuple[int, dict[str, str]] | None = None
        least = len(pairs) + 1  # the pair itself counts as well
        for first, pair in self._tries(run, pairs):
            found, cured = self._try({**repaired, **pair}, right)
            if cured and first:
                return pair
            if (cured or len(found) > least) and (best is None or len(found) > best[0]):
                best = len(found), pair
        return None if best is None else best[1]

    def _try(self, repaired: Mapping[str, str], right: Callable[[Sequence[Any]], bool]) -> tuple[dict[str, str], bool]:
        try:
            found, outputs, _ = self.run(repaired)
            return found, right(outputs)
        except Exception:  # noqa: BLE001 - a value that does not fit there was the wrong one
            return {}, False

    def _tries(self, run: TracedRun, pairs: Mapping[str, str]) -> Iterator[tuple[bool, dict[str, str]]]:
        """Pairs of values of one shape near the place where the runs part; whether nothing of the source is nearer."""
        frontier = find_frontier(self._good, run, self._wrong, rounded=True)
        theirs = values_behind(run, frontier.candidate, NEAR_CANDIDATE)
        count = 0
        for place, source in enumerate(values_behind(self._good, frontier.source, NEAR_SOURCE)):
            want = self._good.values[source]
            for name in theirs:
                value = run.values[name]
                fits = value.shape == want.shape and (value.dtype.kind in "fc") == (want.dtype.kind in "fc")
                if not fits or name in pairs or name in run.constants or value.size <= 1:
                    continue
                count += 1
                if count > MOST_TRIES:
                    return
                yield place == 0, {name: source}
