"""Judges one output of a candidate against the reference, element by element.

*A wrong result must never look like a right one*: whatever differs in existence, type, rank or shape is a difference of
its own and ends the comparison; nothing is broadcast, converted or skipped to make a comparison possible.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from trueport.core.taxonomy import Kind
from trueport.oracle.thresholds import THRESHOLDS, Thresholds
from trueport.oracle.units import float_type

Array = NDArray[Any]

LARGEST_SCORE = 1e300
"""Stands for infinity in records, which are JSON."""


DECISION_FLOORS = 8.0
"""An element that another decision moves by more than this many floors is unstable."""


@dataclass(frozen=True)
class ReferenceOutput:
    """What one output of the source is, and how well that can be known.

    Attributes:
        name: path of the output in the source's result.
        dtype: its type in the source.
        value: float64 for floating-point types (complex128 for complex), else its own type.
        meaning_floor: noise of the float64 evaluation, the shape of `value`; zeros for integers.
        arithmetic_floor: noise of an evaluation in the source's own type.
        unstable: elements that hang on a decision that rounding takes.
        draws: noisy runs behind the floors; an alarm from few draws must be confirmed by more.
        others: the values under the other decisions; an unstable element that agrees with one of them is compared, one
            that agrees with none is neither a pass nor a failure.
    """

    name: str
    dtype: str
    value: Array
    meaning_floor: Array
    arithmetic_floor: Array
    unstable: Array
    draws: int
    others: tuple[Array, ...] = ()


class SourceReference(Protocol):
    """The source at one input set."""

    @property
    def outputs(self) -> tuple[ReferenceOutput, ...]:
        """Values and floors."""

    @property
    def real(self) -> tuple[Array, ...]:
        """The outputs of a plain run in the source's own types."""

    @property
    def ties(self) -> bool:
        """Whether the framework leaves the result open: the order of equal elements, or the path through the graph."""


@dataclass(frozen=True)
class Comparison:
    """The outcome for one output.

    Attributes:
        kind: what differs, or None where nothing does.
        score: largest distance over floor among comparable elements; 0 for none, `LARGEST_SCORE` for infinity.
        index: where it is.
        reference: the reference there.
        candidate: the candidate there.
        floor: the floor there.
        compared: elements compared.
        unstable: elements that hang on a decision that rounding takes and agree with none of its outcomes.
        wrong: elements whose score exceeds the threshold.
        resolution: smallest relative error of the whole output that would have been seen, None where none would.
        detail: for differences that are not of value, what was expected and what came.
    """

    kind: Kind | None
    score: float
    index: tuple[int, ...] = ()
    reference: float | int | bool | str | None = None
    candidate: float | int | bool | str | None = None
    floor: float = 0.0
    compared: int = 0
    unstable: int = 0
    wrong: int = 0
    resolution: float | None = None
    detail: str = ""

    @property
    def different(self) -> bool:
        """Whether the candidate differs by more than noise."""
        return self.kind is not None


def describe(value: object) -> str:
    """Returns `dtype[shape]` of an array, or the type's name of anything else."""
    if isinstance(value, np.ndarray):
        return f"{value.dtype.name}[{','.join(map(str, value.shape))}]"
    return type(value).__name__


def compare_meaning(
    reference: ReferenceOutput,
    candidate: object,
    *,
    extra_floor: Array | None = None,
    thresholds: Thresholds = THRESHOLDS,
) -> Comparison:
    """Judges a candidate evaluated in float64: do both compute the same function?

    Args:
        reference: the source's output.
        candidate: float64 for floating-point types, else exactly the source's type.
        extra_floor: noise of the candidate's own folded constants, or None; one of another shape excuses nothing.
        thresholds: the frozen thresholds unless said otherwise.
    """
    expected = reference.value.dtype
    problem = _structure(reference, candidate, expected.name)
    if problem is not None:
        return problem
    assert isinstance(candidate, np.ndarray)
    magnitude = _magnitude(reference.value)
    floor = np.maximum(reference.meaning_floor, magnitude * 2.0**-50)
    if extra_floor is not None and extra_floor.shape == floor.shape:
        floor = np.sqrt(np.square(floor) + np.square(extra_floor))
    return _values(reference, candidate, floor, np.zeros(()), thresholds.meaning)


def compare_arithmetic(
    reference: ReferenceOutput,
    candidate: object,
    *,
    extra_floor: Array | None = None,
    thresholds: Thresholds = THRESHOLDS,
) -> Comparison:
    """Judges what a runtime computed in the model's own type: is it within what rounding explains?"""
    problem = _structure(reference, candidate, reference.dtype)
    if problem is not None:
        return problem
    assert isinstance(candidate, np.ndarray)
    floor = reference.arithmetic_floor
    if extra_floor is not None and extra_floor.shape == floor.shape:
        floor = np.maximum(floor, extra_floor)
    kind = float_type(reference.dtype)
    rounding: Array = np.zeros(())
    if kind is not None:
        rounding = _magnitude(reference.value) * kind.unit_roundoff + kind.flushed
    return _values(reference, candidate, floor, rounding, thresholds.arithmetic)


def compare_fixed(reference: ReferenceOutput, candidate: object, *, rtol: float, atol: float) -> Comparison:
    """Judges by `|candidate - reference| <= atol + rtol |reference|`, for comparison with other tools only."""
    problem = _structure(reference, candidate, reference.dtype)
    if problem is not None:
        return problem
    assert isinstance(candidate, np.ndarray)
    floor = atol + rtol * _magnitude(reference.value)
    if float_type(reference.dtype) is None:
        floor = np.zeros(reference.value.shape)
    return _values(reference, candidate, floor, np.zeros(()), 1.0)


def _structure(reference: ReferenceOutput, candidate: object, dtype: str) -> Comparison | None:
    """Returns the first structural difference, or None."""
    expected = f"{dtype}[{','.join(map(str, reference.value.shape))}]"
    if not isinstance(candidate, np.ndarray) or isinstance(candidate, np.ma.MaskedArray):
        kind, came = Kind.OUTPUT_COUNT, type(candidate).__name__  # a mask would hide what it covers
    elif candidate.dtype.name != dtype:
        kind, came = Kind.DTYPE, describe(candidate)
    elif candidate.ndim != reference.value.ndim:
        kind, came = Kind.RANK, describe(candidate)
    elif candidate.shape != reference.value.shape:
        kind, came = Kind.SHAPE, describe(candidate)
    else:
        return None
    return Comparison(kind, LARGEST_SCORE, detail=f"output '{reference.name}': expected {expected}, got {came}")


def _magnitude(value: Array) -> Array:
    """Returns |value| as float64 with 0 for what is not finite or no number."""
    if value.dtype.kind in "bOUST":
        return np.zeros(value.shape)
    magnitude = np.abs(value.astype(np.complex128 if value.dtype.kind == "c" else np.float64))
    return np.asarray(np.where(np.isfinite(magnitude), magnitude, 0.0))


def _wide(value: Array) -> Array:
    return value.astype(np.complex128) if value.dtype.kind == "c" else value.astype(np.float64)


def _values(
    reference: ReferenceOutput, candidate: Array, floor: Array, rounding: Array, threshold: float
) -> Comparison:
    """Compares two arrays of equal type and shape."""
    if float_type(reference.dtype) is None:
        return _exact(reference, candidate)
    want, got = reference.value, _wide(candidate)
    score = _scores(want, got, floor, rounding)
    for other in reference.others:
        # Any outcome of the decisions that rounding takes is right. One that moves an element by less than its own
        # rounding does not make it unstable, and is an outcome all the same.
        with np.errstate(invalid="ignore"):
            near = np.abs(other - want) <= DECISION_FLOORS * reference.arithmetic_floor
        applies = reference.unstable | near
        score = np.where(applies, np.minimum(score, _scores(other, got, floor, rounding)), score)
    undecided = reference.unstable & (score > threshold)
    counted = np.where(undecided, 0.0, score)
    resolution = _resolution(want, floor, rounding, ~reference.unstable, threshold)
    if score.size == 0:
        return Comparison(None, 0.0, resolution=0.0)
    index = tuple(int(i) for i in np.unravel_index(int(np.argmax(counted)), counted.shape))
    wrong = counted > threshold
    kind = None
    if wrong.any():
        kind = Kind.VALUE if (np.isfinite(want) & np.isfinite(got))[wrong].any() else Kind.NONFINITE
    floor_here = float(np.broadcast_to(floor, score.shape)[index])
    skipped = int(undecided.sum())
    return Comparison(
        kind, float(counted[index]), index, _plain(want[index]), _plain(candidate[index]), floor_here,
        score.size - skipped, skipped, int(wrong.sum()), resolution,
    )  # fmt: skip


def _scores(want: Array, got: Array, floor: Array, rounding: Array) -> Array:
    """Returns distance over floor for each element; what differs in being finite is infinitely far."""
    with np.errstate(all="ignore"):
        same_kind = (np.isnan(want) & np.isnan(got)) | (want == got)
        finite = np.isfinite(want) & np.isfinite(got)
        distance = np.maximum(np.abs(got - want) - rounding, 0.0)
        # An undefined floor forgives nothing.
        ratio = np.where(distance > 0, distance / np.where(np.isfinite(floor), floor, 0.0), 0.0)
    score = np.where(finite, ratio, np.where(same_kind, 0.0, np.inf))
    return np.asarray(np.minimum(np.nan_to_num(score, nan=LARGEST_SCORE, posinf=LARGEST_SCORE), LARGEST_SCORE))


def _exact(reference: ReferenceOutput, candidate: Array) -> Comparison:
    """The outcome for types that have no rounding."""
    differs = _unequal(reference.value, candidate)
    for other in reference.others:
        differs &= _unequal(other, candidate) | ~reference.unstable
    undecided = reference.unstable & differs
    wrong = differs & ~reference.unstable
    count, skipped = int(wrong.sum()), int(undecided.sum())
    compared = candidate.size - skipped
    if not count:
        return Comparison(None, 0.0, compared=compared, unstable=skipped, resolution=0.0)
    index = tuple(int(i) for i in np.unravel_index(int(np.argmax(wrong)), wrong.shape))
    return Comparison(
        Kind.VALUE, LARGEST_SCORE, index, _plain(reference.value[index]), _plain(candidate[index]), 0.0,
        compared, skipped, count, 0.0,
    )  # fmt: skip


def _unequal(value: Array, candidate: Array) -> Array:
    """Where two values are different; a NaN, which narrow floating-point types have too, is equal to itself."""
    differs = value != candidate
    if value.dtype.kind == "f":
        differs = differs & ~(np.isnan(value) & np.isnan(candidate.astype(np.float64)))
    return np.asarray(differs)


def _resolution(want: Array, floor: Array, rounding: Array, stable: Array, threshold: float) -> float | None:
    """Returns the smallest r for which the output times (1 + r) would have been called different.

    An output that is zero throughout shows no relative error at all: None.
    """
    with np.errstate(all="ignore"):
        magnitude = np.abs(want)
        usable = stable & np.isfinite(magnitude) & (magnitude > 0)
        if not usable.any():
            return 0.0 if want.size == 0 else None
        allowed = np.broadcast_to(threshold * floor + rounding, magnitude.shape)
        return float(np.min(allowed[usable] / magnitude[usable]))


def _plain(value: Any) -> float | int | bool | str:
    """Returns a Python value that JSON can hold; what is not finite and what is complex becomes text."""
    item = value.item() if hasattr(value, "item") else value
    if isinstance(item, bool | int | str):
        return item
    if isinstance(item, complex) or not np.isfinite(item):
        return str(item)
    return float(item)
