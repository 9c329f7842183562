"""Which parts of an optimizer break a model: delta debugging over parts that can be switched off.

What is looked for is the smallest set of parts that must be on for the failure to show while all others are off: one
part, or several that only fail together. Everything off is tried first: a failure that is there without any part is no
part's fault. Delta debugging is `ddmin` of Zeller and Hildebrandt, IEEE TSE 28(2), 2002.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

Fails = Callable[["frozenset[str]"], "bool | None"]
"""Names that are switched off -> whether the failure shows; None where it could not be tried."""

MOST_RUNS = 200


@dataclass(frozen=True)
class OnSet:
    """The parts without which the failure does not show.

    Attributes:
        parts: the smallest set, in the order in which names were given; empty where no part is to blame.
        without: the failure shows with everything off.
        never: it does not show even with nothing off: the way of looking cures it.
        cures_alone: those of `parts` that cure the failure when they alone are switched off.
        complete: False where the limit of runs ended the search; `parts` then may hold too many.
        runs: how often the optimizer was run.
    """

    parts: tuple[str, ...] = ()
    without: bool = False
    never: bool = False
    cures_alone: tuple[str, ...] = ()
    complete: bool = True
    runs: int = 0


class _Out(Exception):  # noqa: N818 - ends the search; nothing is wrong
    """The limit of runs is reached."""


class _Counted:
    def __init__(self, names: Sequence[str], fails: Fails, limit: int) -> None:
        self.runs = 0
        self._names = names
        self._fails = fails
        self._limit = limit
        self._known: dict[frozenset[str], bool] = {}

    def on(self, parts: Iterable[str]) -> bool:
        """Whether the failure shows with these parts on and all others off; what cannot be tried shows nothing."""
        off = frozenset(self._names) - frozenset(parts)
        if off not in self._known:
            if self.runs >= self._limit:
                raise _Out
            self.runs += 1
            self._known[off] = self._fails(off) is True
        return self._known[off]


def smallest_on(names: Sequence[str], fails: Fails, *, limit: int = MOST_RUNS) -> OnSet:
    """Returns the smallest set of parts with which the failure shows; deterministic.

    Args:
        names: of the parts; a name counts once.
        fails: tries the optimizer with parts switched off.
        limit: of runs.
    """
    names = tuple(dict.fromkeys(names))
    tried = _Counted(names, fails, limit)
    parts, complete, alone = names, True, []
    try:
        if tried.on(()):
            return OnSet(without=True, runs=tried.runs)
        if not tried.on(names):
            return OnSet(never=True, runs=tried.runs)
        for smaller in _smaller(names, tried):
            parts = smaller
        alone = [p for p in parts if not tried.on(n for n in names if n != p)]
    except _Out:
        complete = False
    return OnSet(parts, cures_alone=tuple(alone), complete=complete, runs=tried.runs)


def _smaller(names: tuple[str, ...], tried: _Counted) -> Iterable[tuple[str, ...]]:
    """Yields ever smaller sets that fail; the last one is 1-minimal."""
    current, pieces = names, 2
    while len(current) > 1:
        size = -(-len(current) // pieces)
        chunks = [current[i : i + size] for i in range(0, len(current), size)]
        smaller = next((c for c in chunks if len(c) < len(current) and tried.on(c)), None)
        if smaller is not None:
            current, pieces = smaller, 2
        else:
            rests = (tuple(n for n in current if n not in c) for c in chunks)
            rest = next((r for r in rests if r and tried.on(r)), None)
            if rest is not None:
                current, pieces = rest, max(pieces - 1, 2)
            elif size == 1:
                return
            else:
                pieces = min(2 * pieces, len(current))
        yield current
