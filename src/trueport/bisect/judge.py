"""Judges one checkpoint on all input sets: the meaning lane for programs and files, the arithmetic for runtimes."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from trueport.bisect.references import References
from trueport.core.taxonomy import Kind, Lane, Status
from trueport.inputs.draw import InputSet
from trueport.oracle.compare import (
    LARGEST_SCORE,
    Comparison,
    ReferenceOutput,
    compare_arithmetic,
    compare_fixed,
    compare_meaning,
    describe,
)
from trueport.oracle.floor import elementwise_floor
from trueport.oracle.noise import ALARM, SCREEN
from trueport.oracle.thresholds import THRESHOLDS

Array = NDArray[Any]
FEWEST_RUNS = 2
"""So many runs with noise of the candidate's own must have kept the output's shape."""
NoisyRuns = Callable[[InputSet, int], "list[list[Array]]"]


class WideOutput(Protocol):
    """An output in float64 with its real type."""

    @property
    def value(self) -> Array:
        """The values."""

    @property
    def dtype(self) -> str:
        """The real type, or ''."""


@dataclass(frozen=True)
class Trial:
    """One checkpoint on one input set.

    Attributes:
        inputs: the input set.
        comparisons: one per reference output.
        error: what was raised instead, or None.
        counts: False where a difference is a finding but no verdict (non-finite inputs).
        material: whether a difference lies outside what rounding in the source's own type hides.
        swapped: outputs whose values fit each other's place.
        outputs: what a runtime computed, kept where it differs.
    """

    inputs: InputSet
    comparisons: tuple[Comparison, ...] = ()
    error: BaseException | None = None
    counts: bool = True
    material: bool = True
    swapped: tuple[str, ...] = ()
    outputs: tuple[Any, ...] = ()

    @property
    def bad(self) -> bool:
        """Whether the checkpoint failed or differs here."""
        return self.error is not None or any(c.different for c in self.comparisons)

    @property
    def score(self) -> float:
        """The largest score; infinite for an error."""
        if self.error is not None:
            return LARGEST_SCORE
        return max((c.score for c in self.comparisons), default=0.0)

    @property
    def worst(self) -> tuple[int, Comparison] | None:
        """The output with the largest score among those that differ."""
        different = [(i, c) for i, c in enumerate(self.comparisons) if c.different]
        return max(different, key=lambda pair: pair[1].score, default=None)


@dataclass(frozen=True)
class Judgement:
    """One checkpoint on all input sets."""

    status: Status
    lane: Lane
    trials: tuple[Trial, ...] = ()
    missing: tuple[str, ...] = ()
    elapsed_s: float = 0.0

    @property
    def score(self) -> float | None:
        """The largest score over all input sets that count."""
        return max((t.score for t in self.trials if t.counts), default=None)

    @property
    def failures(self) -> tuple[Trial, ...]:
        """Trials that failed or differ and that count."""
        return tuple(t for t in self.trials if t.bad and t.counts)


def judge_meaning(
    evaluate: Callable[[InputSet], Sequence[WideOutput]],
    noisy: NoisyRuns,
    references: References,
    *,
    counts: Callable[[InputSet], bool],
    before: Judgement | None = None,
) -> Judgement:
    """Judges a program evaluated in float64.

    Args:
        evaluate: returns the outputs of one input set.
        noisy: returns evaluations with the program's own noise and its computed constants moved.
        references: the source.
        counts: whether an input set may change the verdict.
        before: the judgement of the checkpoint that this one was made from. What was wrong there cannot be excused
            here by the noise of constants that only this checkpoint holds.
    """
    wrong_before = {t.inputs.label for t in before.trials if t.bad} if before is not None else set()
    trials = []
    for index, inputs in enumerate(references.inputs):
        try:
            outputs = list(evaluate(inputs))
        except Exception as error:  # noqa: BLE001 - whatever a candidate raises is its result
            if type(error).__name__ == "NoFloat64Error":
                return Judgement(Status.NOT_RUN, Lane.NONE, missing=tuple(getattr(error, "operators", ())))
            trials.append(Trial(inputs, error=error, counts=counts(inputs)))
            continue
        trials.append(_meaning_trial(outputs, noisy, references, index, counts(inputs), inputs.label in wrong_before))
    return _summarize(trials, Lane.MEANING)


def _meaning_trial(
    outputs: list[WideOutput], noisy: NoisyRuns, references: References, index: int, counts: bool, inherited: bool
) -> Trial:
    inputs = references.inputs[index]
    compared = _compare_meaning(references.best(index).outputs, outputs, None)
    if not counts:
        return Trial(inputs, tuple(compared), counts=False)
    if _alarm(compared) and not inherited:
        # Few draws may acquit, which spares most right candidates with folded constants the many that an alarm needs.
        with contextlib.suppress(Exception):
            floors = _own_floors(outputs, noisy(inputs, SCREEN.meaning))
            quick = _compare_meaning(references.best(index).outputs, outputs, floors)
            if not any(c.different for c in quick):
                return Trial(inputs, tuple(quick), counts=counts)
    if _alarm(compared) and index not in references.alarms:
        compared = _compare_meaning(references.confirmed(index).outputs, outputs, None)
    if _alarm(compared) and not inherited:
        with contextlib.suppress(Exception):  # without its own noise the candidate is judged by the source's
            floors = _own_floors(outputs, noisy(inputs, ALARM.meaning))
            compared = _compare_meaning(references.confirmed(index).outputs, outputs, floors)
    material = True
    if _alarm(compared):
        material = _material(references.confirmed(index).outputs, outputs, compared)
    swapped = _swapped(references.best(index).outputs, [o.value for o in outputs]) if _alarm(compared) else ()
    return Trial(inputs, tuple(compared), counts=counts, material=material, swapped=swapped)


def _compare_meaning(
    expected: Sequence[ReferenceOutput], outputs: Sequence[WideOutput], floors: Sequence[Array | None] | None
) -> list[Comparison]:
    result = []
    for i, reference in enumerate(expected):
        if i >= len(outputs):
            result.append(_absent(reference))
            continue
        output = outputs[i]
        if output.dtype and output.dtype != reference.dtype:
            shape = ",".join(map(str, output.value.shape))
            detail = f"output '{reference.name}': expected {reference.dtype}, got {output.dtype}[{shape}]"
            result.append(Comparison(Kind.DTYPE, LARGEST_SCORE, detail=detail))
            continue
        extra = floors[i] if floors is not None else None
        result.append(compare_meaning(reference, output.value, extra_floor=extra))
    result += [_surplus(describe(o.value)) for o in outputs[len(expected) :]]
    return result


def _absent(reference: ReferenceOutput) -> Comparison:
    return Comparison(Kind.OUTPUT_COUNT, LARGEST_SCORE, detail=f"output '{reference.name}' is missing")


def _surplus(came: str) -> Comparison:
    return Comparison(Kind.OUTPUT_COUNT, LARGEST_SCORE, detail=f"an output that the source does not have: {came}")


def _alarm(comparisons: Sequence[Comparison]) -> bool:
    return any(c.kind in (Kind.VALUE, Kind.NONFINITE) for c in comparisons)


def _own_floors(outputs: Sequence[WideOutput], runs: list[list[Array]]) -> list[Array | None]:
    """The spread that moving the candidate's computed constants gives each output."""
    floors: list[Array | None] = []
    for i, output in enumerate(outputs):
        # A scale that is moved down by a last place can make a resized output smaller; those runs say nothing.
        column = [np.asarray(run[i]) for run in runs if i < len(run) and run[i].shape == output.value.shape]
        usable = output.value.dtype.kind == "f" and len(column) >= FEWEST_RUNS
        floors.append(elementwise_floor(output.value, column) if usable else None)
    return floors


def _material(
    expected: Sequence[ReferenceOutput], outputs: Sequence[WideOutput], comparisons: Sequence[Comparison]
) -> bool:
    """Whether a difference of meaning would also show in the source's own arithmetic."""
    for reference, output, comparison in zip(expected, outputs, comparisons, strict=False):
        if comparison.kind is None:
            continue
        if comparison.kind not in (Kind.VALUE, Kind.NONFINITE) or reference.value.dtype.kind not in "fc":
            return True
        with np.errstate(all="ignore"):
            distance = np.abs(output.value - reference.value)
            ratio = distance / np.maximum(reference.arithmetic_floor, np.abs(reference.value) * 2.0**-24)
        ratio = np.where(reference.unstable, 0.0, np.nan_to_num(ratio, nan=0.0, posinf=LARGEST_SCORE))
        same = np.isnan(output.value) == np.isnan(reference.value)
        if not same.all() or ratio.max(initial=0.0) > THRESHOLDS.arithmetic:
            return True
    return len(expected) != len(outputs)


def _swapped(expected: Sequence[ReferenceOutput], values: Sequence[Array]) -> tuple[str, ...]:
    """Names of outputs that all appear, each at the place of another."""
    if len(expected) != len(values) or len(values) < 2:
        return ()
    wrong = [i for i, (r, v) in enumerate(zip(expected, values, strict=True)) if compare_meaning(r, v).different]
    places = [
        next((j for j in wrong if j != i and not compare_meaning(expected[i], values[j]).different), None)
        for i in wrong
    ]
    if not wrong or None in places or len(set(places)) != len(wrong):
        return ()
    return tuple(expected[i].name for i in wrong)


def judge_arithmetic(
    run: Callable[[InputSet], Sequence[Any]],
    floors: Callable[[InputSet], Sequence[Array | None] | None],
    references: References,
    *,
    counts: Callable[[InputSet], bool],
    fixed: tuple[float, float] | None = None,
) -> Judgement:
    """Judges what a runtime computed in the model's own types.

    Args:
        run: returns the outputs of one input set.
        floors: the rounding noise of the file's own operators, asked for only when the source's does not acquit.
        references: the source.
        counts: whether an input set may change the verdict.
        fixed: (rtol, atol) instead of the measured floor.
    """
    trials = []
    for index, inputs in enumerate(references.inputs):
        try:
            outputs = list(run(inputs))
        except Exception as error:  # noqa: BLE001 - whatever a runtime raises is its result
            trials.append(Trial(inputs, error=error, counts=counts(inputs)))
            continue
        if fixed is not None:
            compared = _compare_fixed(references.screens[index], outputs, fixed)
        else:
            compared = _compare_arithmetic(references.best(index).outputs, outputs, None)
            if _alarm(compared) and counts(inputs):
                compared = _compare_arithmetic(references.confirmed(index).outputs, outputs, None)
            if _alarm(compared) and counts(inputs):
                compared = _compare_arithmetic(references.confirmed(index).outputs, outputs, floors(inputs))
        kept = tuple(outputs) if any(c.different for c in compared) else ()
        trials.append(Trial(inputs, tuple(compared), counts=counts(inputs), outputs=kept))
    return _summarize(trials, Lane.FIXED if fixed is not None else Lane.ARITHMETIC)


def _compare_arithmetic(
    expected: Sequence[ReferenceOutput], outputs: Sequence[Any], floors: Sequence[Array | None] | None
) -> list[Comparison]:
    result = []
    for i, reference in enumerate(expected):
        if i >= len(outputs):
            result.append(_absent(reference))
            continue
        extra = floors[i] if floors is not None and i < len(floors) else None
        result.append(compare_arithmetic(reference, outputs[i], extra_floor=extra))
    return result + [_surplus(describe(o)) for o in outputs[len(expected) :]]


def _compare_fixed(reference: Any, outputs: Sequence[Any], fixed: tuple[float, float]) -> list[Comparison]:
    """The rule of other tools: against the source's own float32 outputs."""
    result = []
    for i, expected in enumerate(reference.outputs):
        if i >= len(outputs):
            result.append(_absent(expected))
            continue
        real = reference.real[i].astype(np.float64) if expected.value.dtype.kind == "f" else reference.real[i]
        zero = np.zeros(real.shape)
        plain = ReferenceOutput(expected.name, expected.dtype, real, zero, zero, np.zeros(real.shape, bool), 0)
        result.append(compare_fixed(plain, outputs[i], rtol=fixed[0], atol=fixed[1]))
    return result + [_surplus(describe(o)) for o in outputs[len(reference.outputs) :]]


def _summarize(trials: Sequence[Trial], lane: Lane) -> Judgement:
    counted = [t for t in trials if t.counts]
    if any(t.error is not None for t in counted):
        status = Status.CRASHED
    elif any(t.bad for t in counted):
        status = Status.DIVERGED
    else:
        status = Status.OK if counted else Status.NOT_RUN
    return Judgement(status, lane, tuple(trials))
