"""Discontinuous operators: decided by margin, not by sampling.

A run with noise keeps the decisions of the run without, so that a rounding that flips does not look like noise. Two
further runs, the alternates, push every element that is nearer to a jump than a few local floors across it; what
differs at the outputs between them and the main run depends on a decision that rounding takes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueport.adapters.float64.replay.dialect import Jump, Selection
from trueport.adapters.float64.replay.jumps import is_real
from trueport.adapters.float64.replay.operation import Operation
from trueport.oracle.floor import elementwise_floor
from trueport.oracle.thresholds import THRESHOLDS
from trueport.oracle.units import FLOAT_TYPES

Array = NDArray[Any]
Jumps = Mapping[str, Jump]
ALTERNATES = 2
MOST_STEPS, MORE_STEPS = 2, 1000
"""An alternate that takes more than so many times the steps of the main run, and so many more, is on another path: the
number of turns of a loop may be undefined, and then it is as large as its type allows."""


class OtherPathError(Exception):
    """A run met other operators than the main run: a branch or a loop hangs on a decision that rounding takes."""


@dataclass(eq=False)
class Decision:
    """One discontinuous operator of the main run.

    Attributes:
        operation: which.
        arguments: of the main run.
        outputs: of the main run.
        noisy: its arguments in each run with noise of the model's own type.
    """

    operation: Operation
    arguments: list[Any]
    outputs: list[Any]
    noisy: list[list[Any]] = field(default_factory=list)


class Decisions:
    """What the main run decided, in order; `record`, then `keep` for each noisy run, then `push` for each alternate."""

    def __init__(self, jumps: Jumps) -> None:
        self._jumps = jumps
        self.made: list[Decision] = []
        self.steps = 0

    def _jump(self, operation: Operation, arguments: list[Any]) -> Jump | None:
        if operation.nested:
            return None
        jump = self._jumps.get(operation.operator)
        return jump if jump is not None and jump.when(operation, arguments) else None

    def record(self, operation: Operation, arguments: list[Any], outputs: list[Any]) -> list[Any]:
        """Remembers the decisions of the main run."""
        self.steps += 1
        if self._jump(operation, arguments) is not None:
            self.made.append(Decision(operation, arguments, outputs))
        return outputs

    def keeper(self, *, remember: bool) -> Keeper:
        """Returns a follower that keeps the main run's decisions in a noisy run.

        Args:
            remember: whether the run's noise is of the model's own type, so that it tells how near is too near.
        """
        return Keeper(self, remember=remember)

    def pusher(self, number: int, margins: list[list[Array | None]]) -> Pusher:
        """Returns a follower for alternate `number`."""
        return Pusher(self, number, margins)

    def margins(self) -> list[list[Array | None]]:
        """Returns for each decision how near to a jump is too near, per argument."""
        return [_margins(d, self._jumps[d.operation.operator]) for d in self.made]

    def any_near(self, margins: list[list[Array | None]]) -> bool:
        """Whether any decision of the main run would be another within its margin."""
        return any(
            _differs(
                decision.outputs,
                _pushed(decision.operation, self._jumps[decision.operation.operator], decision.arguments, margin, n),
            )
            for decision, margin in zip(self.made, margins, strict=True)
            for n in range(ALTERNATES)
        )

    @property
    def ties(self) -> bool:
        """Whether a selection met equal elements whose order is left open."""
        return any(_has_ties(d, self._jumps[d.operation.operator]) for d in self.made)


class _Following:
    """Meets the discontinuous operators in the order of the main run."""

    def __init__(self, decisions: Decisions) -> None:
        self._decisions = decisions
        self._next = 0

    def _met(self, operation: Operation, arguments: list[Any]) -> tuple[int, Decision, Jump] | None:
        jump = self._decisions._jump(operation, arguments)
        if jump is None:
            return None
        number, self._next = self._next, self._next + 1
        made = self._decisions.made
        if number >= len(made) or made[number].operation.label != operation.label:
            raise OtherPathError(operation.label)
        return number, made[number], jump


class Keeper(_Following):
    """Keeps the main run's decisions."""

    def __init__(self, decisions: Decisions, *, remember: bool) -> None:
        super().__init__(decisions)
        self._remember = remember

    def __call__(self, operation: Operation, arguments: list[Any], outputs: list[Any]) -> list[Any]:
        """Returns the outputs under the main run's decisions."""
        met = self._met(operation, arguments)
        if met is None:
            return outputs
        _, main, jump = met
        if self._remember:
            main.noisy.append(list(arguments))
        if any(_shape(a) != _shape(b) for a, b in zip(arguments, main.arguments, strict=True)):
            raise OtherPathError(operation.label)
        if jump.selection is not None:
            return _reselected(jump.selection, operation, arguments, main.outputs)
        if jump.continuous is not None:
            return jump.continuous(operation, main.arguments, main.outputs, arguments)
        return main.outputs


class Pusher(_Following):
    """Takes every near decision otherwise."""

    def __init__(self, decisions: Decisions, number: int, margins: list[list[Array | None]]) -> None:
        super().__init__(decisions)
        self._number = number
        self._margins = margins
        self._steps = 0

    def __call__(self, operation: Operation, arguments: list[Any], outputs: list[Any]) -> list[Any]:
        """Returns the outputs for the arguments of this run pushed across the jump."""
        self._steps += 1
        if self._steps > MOST_STEPS * self._decisions.steps + MORE_STEPS:
            raise OtherPathError(operation.label)
        met = self._met(operation, arguments)
        if met is None:
            return outputs
        return _pushed(operation, met[2], arguments, self._margins[met[0]], self._number)


def _shape(value: Any) -> tuple[int, ...] | None:
    return value.shape if isinstance(value, np.ndarray) else None


def _margins(decision: Decision, jump: Jump) -> list[Array | None]:
    result: list[Array | None] = []
    unit = FLOAT_TYPES["float32"].unit_roundoff
    for position, value in enumerate(decision.arguments):
        if not is_real(value):
            result.append(None)
            continue
        column = [run[position] for run in decision.noisy if _shape(run[position]) == value.shape]
        margin = THRESHOLDS.margin * elementwise_floor(value, column)
        if jump.inner:
            margin = np.maximum(margin, THRESHOLDS.margin * jump.inner * unit * np.abs(value))
        result.append(np.where(np.isfinite(margin), margin, 0.0))
    return result


def _pushed(
    operation: Operation, jump: Jump, arguments: list[Any], margins: list[Array | None], number: int
) -> list[Any]:
    """Returns the outputs of a discontinuous operator with every near element pushed across the jump."""
    fits = [m if m is not None and m.shape == _shape(a) else None for a, m in zip(arguments, margins, strict=False)]
    fits += [None] * (len(arguments) - len(fits))
    if jump.selection is not None:
        return _otherwise(operation, jump.selection, arguments, fits[0], number)
    moved = [
        a if m is None else a + (1.0 if (i + number) % 2 == 0 else -1.0) * m
        for i, (a, m) in enumerate(zip(arguments, fits, strict=True))
    ]
    outputs = list(operation.apply(moved))
    if jump.undefined is not None:
        mask = jump.undefined(operation, arguments)
        if mask is not None and mask.any():
            outputs[0] = np.where(mask, _extreme(outputs[0].dtype, number), outputs[0]).astype(outputs[0].dtype)
    return outputs


def _extreme(dtype: np.dtype[Any], number: int) -> Any:
    """The ends of a type stand for a result that may be anything."""
    if dtype.kind == "b":
        return bool(number)
    if dtype.kind == "V":  # integers of less than a byte
        return number
    info = np.finfo(dtype) if dtype.kind == "f" else np.iinfo(dtype)
    return info.max if number else info.min


def _differs(main: list[Any], other: list[Any]) -> bool:
    for a, b in zip(main, other, strict=False):
        if not isinstance(a, np.ndarray) or not isinstance(b, np.ndarray):
            continue
        if a.shape != b.shape or not np.array_equal(a, b, equal_nan=a.dtype.kind in "fc"):
            return True
    return False


# ---------------------------------------------------------------------- selections


def _axis(selection: Selection, operation: Operation, arguments: list[Any]) -> int:
    return int(selection.axis(operation, arguments) % max(arguments[0].ndim, 1))


def _has_ties(decision: Decision, jump: Jump) -> bool:
    if jump.selection is None or jump.selection.first_of_ties or not is_real(decision.arguments[0]):
        return False
    value = decision.arguments[0]
    if value.ndim == 0:
        return False
    ordered = np.sort(value, axis=_axis(jump.selection, decision.operation, decision.arguments))
    return bool((np.diff(ordered, axis=_axis(jump.selection, decision.operation, decision.arguments)) == 0).any())


def _reselected(selection: Selection, operation: Operation, arguments: list[Any], main: list[Any]) -> list[Any]:
    """Returns a selection's outputs for noisy arguments with the places that the main run chose."""
    outputs = list(main)
    value = arguments[0]
    if selection.values is None or not is_real(value) or selection.indices >= len(main):
        return outputs
    places = main[selection.indices]
    if value.ndim and isinstance(places, np.ndarray) and places.ndim == value.ndim:
        outputs[selection.values] = np.take_along_axis(value, places, _axis(selection, operation, arguments))
    return outputs


def _otherwise(
    operation: Operation, selection: Selection, arguments: list[Any], margin: Array | None, number: int
) -> list[Any]:
    """Returns a selection's outputs with each group of elements that rounding cannot tell apart in another order.

    Alternate 0 reverses every group, alternate 1 rotates it by one place, so that no place keeps its element in both.
    """
    value = arguments[0]
    if margin is None or not value.ndim or value.shape[_axis(selection, operation, arguments)] < 2:
        return list(operation.apply(arguments))
    axis = _axis(selection, operation, arguments)
    largest = selection.largest(operation)
    ranks = _reordered(value, margin, number, axis, ties=not selection.first_of_ties, largest=largest)
    outputs = list(operation.apply([ranks, *arguments[1:]]))
    return _reselected(selection, operation, arguments, outputs)


def _reordered(value: Array, margin: Array, number: int, axis: int, *, ties: bool, largest: bool) -> Array:
    """Returns numbers whose order is the other one."""
    keys = -value if largest else value
    order = np.argsort(keys, axis=axis, kind="stable")
    ranked, room = np.take_along_axis(value, order, axis), np.take_along_axis(margin, order, axis)
    size = value.shape[axis]
    with np.errstate(invalid="ignore"):
        gap = np.abs(np.diff(ranked, axis=axis))
    head = [slice(None)] * value.ndim
    tail = [slice(None)] * value.ndim
    head[axis], tail[axis] = slice(0, size - 1), slice(1, size)
    reach = room[tuple(head)] + room[tuple(tail)]
    near = (gap <= reach) & ((reach > 0) | ties)
    edge = np.zeros_like(np.take(near, [0], axis)) | True
    begins = np.concatenate([edge, ~near], axis)
    ends = np.concatenate([~near, edge], axis)
    shape = [1] * value.ndim
    shape[axis] = size
    place = np.broadcast_to(np.arange(size).reshape(shape), value.shape)
    first = np.maximum.accumulate(np.where(begins, place, 0), axis)
    last = np.flip(np.minimum.accumulate(np.flip(np.where(ends, place, size - 1), axis), axis), axis)
    target = first + last - place if number == 0 else np.where(place == last, first, place + 1)
    ranks = np.zeros(value.shape)
    np.put_along_axis(ranks, order, -target.astype(np.float64) if largest else target.astype(np.float64), axis)
    return ranks
