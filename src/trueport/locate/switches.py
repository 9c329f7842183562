"""Which parts of an optimizer are needed for a failure to show: delta debugging over switches.

Parts are searched as sets, not one by one: two passes that are wrong only together are found together. The method is
`ddmin` of Zeller and Hildebrandt, "Simplifying and Isolating Failure-Inducing Input" (IEEE TSE 28(2), 2002).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

RUNS = 200
"""Runs after which a search ends with the best that it has."""

Fails = Callable[[frozenset[str]], "bool | None"]
"""Parts that are off -> whether it fails then; None where it could not be run. Asked once for each set."""


@dataclass(frozen=True)
class OnSet:
    """The parts that have to be on for the failure to show.

    Attributes:
        on: the parts, in the order of the names; with these on and all others off it fails. Empty where no part is
            to blame or the search could not begin.
        cures_alone: per part of `on`, whether it no longer fails where this one alone is off and all others are on;
            None where that could not be run, or not any more.
        without: it fails with every part off, so it is no part's fault.
        never: it does not fail even with every part on: what was run is not what failed.
        unusable: with every part on it could not be run, so nothing is known.
        minimal: each part of `on` was seen to be needed: with one less it does not fail, or cannot be run.
        runs: how often it was run.
        unknown: how many of these gave no answer.
    """

    on: tuple[str, ...] = ()
    cures_alone: tuple[bool | None, ...] = ()
    without: bool = False
    never: bool = False
    unusable: bool = False
    minimal: bool = False
    runs: int = 0
    unknown: int = 0

    @property
    def cures(self) -> list[str]:
        """The parts that cure the failure when they alone are off."""
        return [part for part, cured in zip(self.on, self.cures_alone, strict=True) if cured]

    @property
    def evidence(self) -> dict[str, object]:
        """The set as JSON values."""
        return {"parts": list(self.on), "cures_alone": self.cures, "runs": self.runs, "smallest": self.minimal}


class _LimitError(Exception):
    """No run is left."""


class _Runs:
    """Asks once for each set, counts, and stops at the limit."""

    def __init__(self, names: tuple[str, ...], fails: Fails, limit: int) -> None:
        self.names, self._fails, self._limit = names, fails, limit
        self._known: dict[frozenset[str], bool | None] = {}

    @property
    def count(self) -> int:
        return len(self._known)

    @property
    def unknown(self) -> int:
        return sum(answer is None for answer in self._known.values())

    def without(self, off: frozenset[str]) -> bool | None:
        if off not in self._known:
            if self.count >= self._limit:
                raise _LimitError
            self._known[off] = self._fails(off)
        return self._known[off]

    def with_only(self, on: Sequence[str]) -> bool:
        return self.without(frozenset(self.names) - frozenset(on)) is True


def smallest_on(names: Sequence[str], fails: Fails, *, limit: int = RUNS) -> OnSet:
    """Returns a smallest set of parts that must be on for the failure to show, all others being off.

    Smallest means that no single part can be taken out of it (1-minimal), not that no other set has fewer parts. The
    same names and answers give the same set.

    Args:
        names: of the parts; a name that stands there twice counts once.
        fails: see `Fails`; an unknown answer is taken for no failure.
        limit: of runs, at least 1.

    Raises:
        ValueError: the limit is below 1.
    """
    if limit < 1:
        raise ValueError(f"expected a limit of at least 1 run, got {limit}")
    parts = tuple(dict.fromkeys(names))
    runs = _Runs(parts, fails, limit)
    everything = runs.without(frozenset())
    if everything is not True:
        return OnSet(never=everything is False, unusable=everything is None, runs=runs.count, unknown=runs.unknown)
    best = list(parts)
    try:
        if runs.with_only(()):
            return OnSet(without=True, minimal=True, runs=runs.count, unknown=runs.unknown)
        _reduce(best, runs)
        minimal = True
    except _LimitError:
        minimal = False
    on = tuple(best)
    cures = tuple(_cures(part, runs) for part in on)
    return OnSet(on, cures, minimal=minimal, runs=runs.count, unknown=runs.unknown)


def _reduce(best: list[str], runs: _Runs) -> None:
    """Takes parts out of `best`, in place so that a limit leaves what was reached, until none can be taken out."""
    pieces = 2
    while len(best) > 1:
        chunks = _split(best, pieces)
        rests = [[part for part in best if part not in chunk] for chunk in map(frozenset, chunks)]
        smaller = next((chunk for chunk in chunks if runs.with_only(chunk)), None)
        if smaller is not None:
            best[:], pieces = smaller, 2
            continue
        smaller = next((rest for rest in rests if runs.with_only(rest)), None)
        if smaller is not None:
            best[:], pieces = smaller, max(pieces - 1, 2)
        elif pieces >= len(best):
            return
        else:
            pieces = min(2 * pieces, len(best))


def _split(parts: Sequence[str], pieces: int) -> list[list[str]]:
    """Returns the parts in runs of about equal length, none empty."""
    edges = [len(parts) * i // pieces for i in range(pieces + 1)]
    return [list(parts[a:b]) for a, b in itertools.pairwise(edges) if a < b]


def _cures(part: str, runs: _Runs) -> bool | None:
    try:
        failed = runs.without(frozenset({part}))
    except _LimitError:
        return None
    return None if failed is None else not failed
