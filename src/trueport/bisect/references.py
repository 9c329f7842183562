"""What the source computes on each input set, computed once and used for every checkpoint, converter and runtime."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from trueport.core.errors import SourceError
from trueport.inputs.draw import InputSet
from trueport.oracle.compare import SourceReference
from trueport.oracle.noise import ALARM, SCREEN, Draws

Array = NDArray[Any]


class Source(Protocol):
    """The subject as something that can be run with and without noise."""

    def reference(self, inputs: InputSet, number: int, draws: Draws) -> SourceReference:
        """Returns outputs with the floors that these draws give.

        Raises:
            SourceError: the subject refuses the inputs; any other exception is a fault of ours.
        """

    def real(self, inputs: InputSet, *, fresh_random: bool) -> tuple[Array, ...]:
        """Returns the outputs of a plain run; with other random numbers than the first run had if asked."""


@dataclass(frozen=True)
class Refused:
    """An input set that the source itself refused; it is dropped and counted."""

    label: str
    reason: str


@dataclass
class References:
    """The source's outputs on every input set that it accepts.

    Attributes:
        source: what is run.
        inputs: accepted input sets.
        screens: their references from few draws.
        refused: what was dropped.
        deterministic: whether two runs at the example agree bit for bit.
        alarms: references from many draws, made when first needed.
        screen: the draws behind `screens`.
    """

    source: Source
    inputs: list[InputSet] = field(default_factory=list)
    screens: list[Any] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)
    deterministic: bool = True
    alarms: dict[int, Any] = field(default_factory=dict)
    screen: Draws = SCREEN

    def confirmed(self, index: int) -> Any:
        """Returns the reference of an input set from as many draws as an alarm needs."""
        if index not in self.alarms:
            self.alarms[index] = self.source.reference(self.inputs[index], index, ALARM)
        return self.alarms[index]

    def best(self, index: int) -> Any:
        """Returns the reference from the most draws made so far."""
        return self.alarms.get(index, self.screens[index])

    @property
    def draws(self) -> int:
        """The largest number of arithmetic draws behind any floor."""
        return ALARM.arithmetic if self.alarms else self.screen.arithmetic


EDGES = frozenset({"zeros", "constant", "large", "small", "negative", "halves", "nonfinite"})
"""Regimes in which ties and ranges make elements incomparable by nature; they do not count for the share."""
DEGENERATE = frozenset({"zeros", "constant", "halves"})
"""Regimes in which many elements are equal: what selects by order answers as it likes."""
MOST_EXTRA = 16
"""How many further sets are drawn at most where too many elements hang on rounding."""
FUTILE = 3
"""After so many further sets that changed nothing, no more are drawn: the decision does not depend on the values."""


def comparable_share(references: References) -> float:
    """Returns the smallest share of comparable elements that any output has, edge regimes left out."""
    counts: dict[str, list[int]] = {}
    for inputs, reference in zip(references.inputs, references.screens, strict=True):
        if inputs.regime in EDGES:
            continue
        for output in reference.outputs:
            held = counts.setdefault(output.name, [0, 0])
            held[0] += int(output.value.size - output.unstable.sum())
            held[1] += output.value.size
    return min((stable / total for stable, total in counts.values() if total), default=1.0)


def draw_until_comparable(references: References, again: Callable[[int], InputSet], *, needed: float) -> None:
    """Adds redrawn input sets while too many elements hang on a decision that rounding takes."""
    first = comparable_share(references)
    for number in range(1, MOST_EXTRA + 1):
        share = comparable_share(references)
        if share >= needed or (number > FUTILE and share <= first):
            return
        inputs = again(number)
        try:
            reference = references.source.reference(inputs, len(references.inputs), references.screen)
        except SourceError as error:
            references.refused.append(_refused(inputs, error))
            continue
        references.inputs.append(inputs)
        references.screens.append(reference)


def collect(
    source: Source, sets: Sequence[InputSet], progress: Callable[[str], None], *, screen: Draws = SCREEN
) -> References:
    """Runs the source on every input set.

    Args:
        source: what is run.
        sets: the example first.
        progress: told the label of each set.
        screen: how many draws a reference is made from before there is an alarm.

    Raises:
        SourceError: the source fails on its own example, which is the first set.
    """
    references = References(source, screen=screen)
    for number, inputs in enumerate(sets):
        progress(inputs.label)
        try:
            reference = source.reference(inputs, number, screen)
        except SourceError as error:
            if number == 0:
                raise SourceError(f"the source fails on its own example: {error}") from error.__cause__
            references.refused.append(_refused(inputs, error))
            continue
        if inputs.regime in DEGENERATE and reference.ties:
            references.refused.append(Refused(inputs.label, "the source leaves open what it gives for equal elements"))
            continue
        references.inputs.append(inputs)
        references.screens.append(reference)
    references.deterministic = _same(references.screens[0].real, source.real(sets[0], fresh_random=True))
    return references


def _refused(inputs: InputSet, error: SourceError) -> Refused:
    return Refused(inputs.label, str(error)[:300])


def _same(first: Sequence[Array], second: Sequence[Array]) -> bool:
    return len(first) == len(second) and all(
        a.shape == b.shape
        and a.dtype == b.dtype
        and np.array_equal(_comparable(a), _comparable(b), equal_nan=_may_be_nan(a))
        for a, b in zip(first, second, strict=True)
    )


def _comparable(values: Array) -> Array:
    """NumPy does not know that bfloat16 and float8 have a NaN."""
    return values.astype(np.float64) if values.dtype.kind == "V" else values


def _may_be_nan(values: Array) -> bool:
    return values.dtype.kind in "fcV"
