"""The smallest sequence of operators that an optimizer gets wrong together although it gets each one right alone.

The study's finding made operational: a sequence is blamed only where every operator of it is right by itself, with the
same attributes, shapes, types and values, and the whole of it is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations
from typing import TYPE_CHECKING, Any

from trueport.core.errors import UsageError

if TYPE_CHECKING:
    from trueport.onnxgraph.cut import Cutter

Wrong = Callable[[Any, Mapping[str, Any]], "bool | None"]
"""(model, feeds) -> whether the optimizer gets the model wrong; None where that cannot be told."""

MOST_TRIES = 400
_ENUMERATED = 10
_WIDER = 2


class Outcome(StrEnum):
    """What the search found."""

    SEQUENCE = "sequence"
    SINGLE = "single operator"
    NOT_REPRODUCED = "not reproduced"
    UNPROVEN = "unproven"


@dataclass(frozen=True)
class FoundSequence:
    """The smallest part that fails.

    Attributes:
        outcome: `SINGLE` where operators are wrong alone, so that no sequence is to blame; `NOT_REPRODUCED` where no
            part around the nodes fails alone; `UNPROVEN` where an operator of the smallest part could not be tried
            alone, or where the limit ended the search before it was known to be the smallest.
        nodes: numbers of the nodes, in order.
        operators: their types.
        outputs: the first output of each.
        barrier: whether it becomes right when the values between its nodes are outputs; None where that is not known.
        tries: models that were tried.
        complete: the search was not ended by its limit.
    """

    outcome: Outcome
    nodes: tuple[int, ...] = ()
    operators: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    barrier: bool | None = None
    tries: int = 0
    complete: bool = True


def smallest_sequence(
    cutter: Cutter, removed: Collection[str], wrong: Wrong, *, most_tries: int = MOST_TRIES
) -> FoundSequence:
    """Returns the smallest connected part of the nodes that an optimizer removed which it gets wrong alone.

    Args:
        cutter: of the model before the optimizer, with recorded values.
        removed: names of values that the removed nodes make.
        wrong: runs the optimizer on a part and judges it.
        most_tries: ends the search.
    """
    search = _Search(cutter, wrong, most_tries)
    region = frozenset(i for i in cutter.numbers(removed) if not cutter.is_constant(i))
    start = search.start(region)
    if start is None:
        return search.found(Outcome.NOT_REPRODUCED, sorted(region))
    alone = [i for i in sorted(start) if search.is_wrong(frozenset({i}))]
    if alone:
        return search.found(Outcome.SINGLE, alone)
    smallest = search.smaller(search.reduced(start))
    proven = all(search.is_wrong(frozenset({i})) is False for i in smallest)
    outcome = Outcome.SEQUENCE if proven and len(smallest) > 1 and search.complete else Outcome.UNPROVEN
    return search.found(outcome, sorted(smallest), barrier=search.barrier(smallest))


def occurrences(cutter: Cutter, nodes: Sequence[int]) -> list[tuple[int, ...]]:
    """Returns other places of the model with the same operators that hand values on in the same way, at most 100."""
    wanted = [cutter.nodes[i] for i in nodes]
    edges = [(a, b) for a in range(len(nodes)) for b in range(len(nodes)) if cutter.feeds_into(nodes[a], nodes[b])]
    places: list[list[int]] = [[]]
    for place, node in enumerate(wanted):
        grown = []
        for partial in places:
            near = _candidates(cutter, partial, edges, place, node)
            grown += [[*partial, i] for i in near if i not in partial]
        places = grown[:10_000]
    own = set(nodes)
    return [tuple(p) for p in places if not own & set(p)][:100]


def _candidates(
    cutter: Cutter, partial: Sequence[int], edges: Sequence[tuple[int, int]], place: int, node: Any
) -> Iterator[int]:
    for number, other in enumerate(cutter.nodes):
        if (other.op_type, other.domain) != (node.op_type, node.domain):
            continue
        if all(cutter.feeds_into((*partial, number)[a], (*partial, number)[b]) for a, b in edges if max(a, b) == place):
            yield number


class _Search:
    """Tries parts, each once.

    Attributes:
        complete: the limit was not reached.
    """

    def __init__(self, cutter: Cutter, wrong: Wrong, most_tries: int) -> None:
        self._cutter = cutter
        self._wrong = wrong
        self._left = most_tries
        self._known: dict[frozenset[int], bool | None] = {}
        self._tries = 0
        self.complete = True

    def is_wrong(self, part: frozenset[int]) -> bool | None:
        """Whether the optimizer gets a part wrong; None where it cannot be told.

        Values between its nodes that others read as well are left inside first: shown as outputs they may cure it.
        """
        if part not in self._known:
            found = self._try(part, ())
            elsewhere = self._cutter.read_elsewhere(part)
            if not found and elsewhere:
                shown = self._try(part, elsewhere)
                found = shown if shown or found is None else found
            self._known[part] = found
        return self._known[part]

    def _try(self, part: frozenset[int], shown: Collection[str]) -> bool | None:
        if self._tries >= self._left:
            self.complete = False
            return None
        self._tries += 1
        try:
            cut = self._cutter.cut(part, shown=shown)
        except UsageError:
            return None
        return self._wrong(cut.model, cut.feeds)

    def start(self, region: frozenset[int]) -> frozenset[int] | None:
        """Returns a connected part that fails: one of those that the region falls into, or one with its neighbours."""
        wider = region
        for _ in range(_WIDER + 1):
            for part in self._connected(wider):
                if self.is_wrong(part):
                    return part
            wider = wider | {n for i in wider for n in self._cutter.neighbours(i)}
        return None

    def reduced(self, part: frozenset[int]) -> frozenset[int]:
        """Returns a part that fails and from which no single node can be taken."""
        smaller: frozenset[int] | None = part
        while smaller is not None:
            part = smaller
            without = (part - {i} for i in sorted(part, reverse=True))
            smaller = next((p for p in without if len(p) > 1 and self._is_one(p) and self.is_wrong(p)), None)
        return part

    def smaller(self, part: frozenset[int]) -> frozenset[int]:
        """Returns the smallest connected part that fails inside of a small one: failures need not be monotone."""
        if len(part) > _ENUMERATED:
            return part
        for size in range(2, len(part)):
            for candidate in self._parts(sorted(part), size):
                if self.is_wrong(candidate):
                    return candidate
        return part

    def barrier(self, part: frozenset[int]) -> bool | None:
        """Whether showing the values between its nodes makes a part right."""
        between = self._cutter.between(part)
        if not between:
            return None
        shown = self._try(part, between)
        return None if shown is None else not shown

    def found(self, outcome: Outcome, nodes: Sequence[int], *, barrier: bool | None = None) -> FoundSequence:
        """Returns the result."""
        protos = [self._cutter.nodes[i] for i in nodes]
        outputs = tuple(next((o for o in node.output if o), "") for node in protos)
        operators = tuple(node.op_type for node in protos)
        return FoundSequence(outcome, tuple(nodes), operators, outputs, barrier, self._tries, self.complete)

    def _connected(self, nodes: frozenset[int]) -> list[frozenset[int]]:
        left, parts = set(nodes), []
        while left:
            waiting, part = [min(left)], set[int]()
            while waiting:
                number = waiting.pop()
                if number in left:
                    left.discard(number)
                    part.add(number)
                    waiting += sorted(self._cutter.neighbours(number) & left)
            parts.append(frozenset(part))
        return parts

    def _is_one(self, nodes: frozenset[int]) -> bool:
        return len(self._connected(nodes)) == 1

    def _parts(self, nodes: Sequence[int], size: int) -> Iterator[frozenset[int]]:
        for chosen in combinations(nodes, size):
            if self._is_one(frozenset(chosen)):
                yield frozenset(chosen)
