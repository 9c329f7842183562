"""One checkpoint on all input sets: few draws acquit, many convict, and nothing is lost on the way."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from tests.unit.bisect.fakes import AWAY, EXAMPLE, NONFINITE, FakeSource, Reference, failed, output, right, wrong
from trueport.bisect.judge import Judgement, Trial, judge_arithmetic, judge_meaning
from trueport.bisect.references import collect
from trueport.core.taxonomy import Kind, Lane, Status
from trueport.oracle.compare import LARGEST_SCORE
from trueport.oracle.noise import ALARM, SCREEN


@dataclass
class Wide:
    value: np.ndarray
    dtype: str = "float32"


class NoFloat64Error(Exception):
    """Has the name and the attribute by which an adapter says that a kernel is missing."""

    operators = ("Strange",)


VALUE = np.arange(3.0)


def _collected(source=None, sets=(EXAMPLE, AWAY)):
    return collect(source or FakeSource(), list(sets), lambda _: None)


def _meaning(evaluate, references=None, *, noisy=None, counts=lambda _: True, before=None):
    def quiet(inputs, draws):
        return [[output.value for output in evaluate(inputs)] for _ in range(draws)]

    return judge_meaning(evaluate, noisy or quiet, references or _collected(), counts=counts, before=before)


def _arithmetic(run, references=None, *, floors=lambda _: None, counts=lambda _: True, fixed=None):
    return judge_arithmetic(run, floors, references or _collected(), counts=counts, fixed=fixed)


# ---------------------------------------------------------------------- both lanes


def test_right_everywhere_is_ok_and_costs_few_draws():
    source = FakeSource()
    told = _meaning(lambda _: [Wide(VALUE)], _collected(source))
    assert (told.status, told.lane, len(told.trials)) == (Status.OK, Lane.MEANING, 2)
    assert {total for _, _, total in source.asked} == {SCREEN.total}


def test_a_conviction_needs_many_draws():
    source = FakeSource()
    told = _arithmetic(lambda _: [VALUE.astype(np.float32) + np.float32(1)], _collected(source))
    assert told.status is Status.DIVERGED
    assert ("example", 0, ALARM.total) in source.asked


class _Wider(FakeSource):
    """Its floor from many draws is larger than that from few."""

    def reference(self, inputs, number, draws):
        size = 1e-2 if draws.total == ALARM.total else 1e-9
        return Reference((output(VALUE, floor=size, noise=size),), (VALUE.astype(np.float32),))


def test_an_alarm_of_few_draws_can_be_taken_back_by_many():
    near = VALUE + 1e-3
    assert _meaning(lambda _: [Wide(near)], _collected(_Wider())).status is Status.OK
    assert _arithmetic(lambda _: [near.astype(np.float32)], _collected(_Wider())).status is Status.OK


def test_every_input_set_is_judged():
    def run(inputs):
        return [VALUE.astype(np.float32) + np.float32(inputs.label == AWAY.label)]

    told = _arithmetic(run)
    assert [t.bad for t in told.trials] == [False, True]
    assert [t.inputs.label for t in told.failures] == [AWAY.label]


def test_what_raises_on_one_input_is_a_crash():
    def run(inputs):
        if inputs is AWAY:
            raise RuntimeError("no")
        return [VALUE.astype(np.float32)]

    told = _arithmetic(run)
    assert told.status is Status.CRASHED
    assert told.score == LARGEST_SCORE
    assert isinstance(told.trials[1].error, RuntimeError)


def test_what_does_not_count_is_recorded_and_changes_nothing():
    references = _collected(sets=(EXAMPLE, NONFINITE))

    def run(inputs):
        return [VALUE.astype(np.float32) + np.float32(inputs is NONFINITE)]

    told = _arithmetic(run, references, counts=lambda i: i.regime != "nonfinite")
    assert told.status is Status.OK
    assert told.trials[1].bad
    assert not told.failures
    assert told.score is not None
    assert told.score < 1
    assert _arithmetic(run, references).status is Status.DIVERGED


def test_nothing_that_counts_is_no_pass():
    told = _arithmetic(lambda _: [VALUE.astype(np.float32)], counts=lambda _: False)
    assert told.status is Status.NOT_RUN
    assert told.score is None


@pytest.mark.parametrize("came", [[], [VALUE.astype(np.float32)] * 2, None, [None]])
def test_number_of_outputs(came):
    assert _arithmetic(lambda _: came).status in (Status.DIVERGED, Status.CRASHED)


# ---------------------------------------------------------------------- the meaning lane


def test_a_missing_kernel_is_no_judgement():
    def evaluate(_):
        raise NoFloat64Error

    told = _meaning(evaluate)
    assert (told.status, told.lane, told.missing) == (Status.NOT_RUN, Lane.NONE, ("Strange",))


def test_the_declared_type_counts_even_if_the_values_agree():
    told = _meaning(lambda _: [Wide(VALUE, "float16")])
    worst = told.trials[0].worst
    assert worst is not None
    assert worst[1].kind is Kind.DTYPE
    assert worst[1].detail == "output 'y': expected float32, got float16[3]"


def test_constants_that_the_candidate_computed_itself_excuse_a_last_place():
    near = VALUE + 1e-8

    def noisy(inputs, draws):
        rng = np.random.default_rng(0)
        return [[near + 1e-8 * rng.standard_normal(3)] for _ in range(draws)]

    assert _meaning(lambda _: [Wide(near)], noisy=noisy).status is Status.OK
    assert _meaning(lambda _: [Wide(near)]).status is Status.DIVERGED


def test_what_was_wrong_before_is_not_excused_by_constants_of_a_later_checkpoint():
    near = VALUE + 1e-8

    def noisy(inputs, draws):
        rng = np.random.default_rng(0)
        return [[near + 1e-8 * rng.standard_normal(3)] for _ in range(draws)]

    before = Judgement(Status.DIVERGED, Lane.MEANING, (wrong(EXAMPLE), right(AWAY)))
    told = _meaning(lambda _: [Wide(near)], noisy=noisy, before=before)
    assert [t.bad for t in told.trials] == [True, False]


def test_a_noisy_run_of_another_shape_excuses_nothing():
    def noisy(inputs, draws):
        return [[np.zeros(5)] for _ in range(draws)]

    assert _meaning(lambda _: [Wide(VALUE + 1e-3)], noisy=noisy).status is Status.DIVERGED


def test_a_candidate_whose_noisy_runs_raise_is_still_judged():
    """What a candidate raises is its result, never the end of the check."""

    def noisy(inputs, draws):
        raise RuntimeError("no noise for this one")

    assert _meaning(lambda _: [Wide(VALUE + 1)], noisy=noisy).status is Status.DIVERGED


def test_a_difference_inside_the_source_s_own_rounding_is_latent():
    hidden = _meaning(lambda _: [Wide(VALUE + 1e-9)]).trials[0]
    assert hidden.bad
    assert not hidden.material
    assert _meaning(lambda _: [Wide(VALUE + 1e-2)]).trials[0].material
    assert _meaning(lambda _: [Wide(VALUE, "float64")]).trials[0].material


@pytest.mark.parametrize("special", [np.nan, np.inf])
def test_a_difference_that_is_not_finite_is_never_latent(special):
    came = VALUE.copy()
    came[1] = special
    assert _meaning(lambda _: [Wide(came)]).trials[0].material


# ---------------------------------------------------------------------- outputs in another order


class _Two(FakeSource):
    def reference(self, inputs, number, draws):
        outputs = (output(VALUE, name="a"), output(VALUE + 5, name="b"))
        return Reference(outputs, tuple(o.value.astype(np.float32) for o in outputs))

    def real(self, inputs, *, fresh_random):
        return self.reference(inputs, 0, SCREEN).real


def test_swapped_outputs_are_recognized():
    told = _meaning(lambda _: [Wide(VALUE + 5), Wide(VALUE)], _collected(_Two()))
    assert told.trials[0].bad
    assert told.trials[0].swapped == ("a", "b")


def test_one_wrong_output_is_not_swapped():
    told = _meaning(lambda _: [Wide(VALUE + 5), Wide(VALUE + 5)], _collected(_Two()))
    assert told.trials[0].bad
    assert told.trials[0].swapped == ()


# ---------------------------------------------------------------------- the arithmetic lane


def test_the_file_s_own_rounding_is_asked_for_only_when_needed():
    asked = []

    def floors(inputs):
        asked.append(inputs.label)
        return [np.full(3, 1e-2)]

    assert _arithmetic(lambda _: [VALUE.astype(np.float32)], floors=floors).status is Status.OK
    assert asked == []
    near = (VALUE + 1e-2).astype(np.float32)
    assert _arithmetic(lambda _: [near], floors=floors).status is Status.OK
    assert asked == ["example", "redrawn 1"]
    assert _arithmetic(lambda _: [near + np.float32(10)], floors=floors).status is Status.DIVERGED


def test_the_file_s_own_rounding_does_not_excuse_structure():
    told = _arithmetic(lambda _: [VALUE], floors=lambda _: [np.full(3, 1e9)])
    assert told.status is Status.DIVERGED


@pytest.mark.parametrize("floors", [[np.full((4, 3), 1e9)], [np.full((1,), 1e9)], [np.array(1e9)]])
def test_a_floor_of_another_shape_excuses_nothing(floors):
    """The file evaluated in float64 may have another shape than what the runtime gave."""
    assert _arithmetic(lambda _: [VALUE.astype(np.float32) + 1], floors=lambda _: floors).status is Status.DIVERGED


def test_the_fixed_rule_compares_with_the_source_s_own_run():
    came = VALUE.astype(np.float32) + np.float32(1e-4)
    assert _arithmetic(lambda _: [came], fixed=(0.0, 1e-3)).status is Status.OK
    told = _arithmetic(lambda _: [came], fixed=(0.0, 1e-5))
    assert (told.status, told.lane) == (Status.DIVERGED, Lane.FIXED)


# ---------------------------------------------------------------------- values


def test_the_worst_output_is_the_one_that_differs_most():
    first, second = wrong(score=10.0).comparisons[0], wrong(score=20.0).comparisons[0]
    fine = right().comparisons[0]
    assert Trial(EXAMPLE, (fine, first, second)).worst == (2, second)
    assert right().worst is None
    assert failed().score == LARGEST_SCORE
