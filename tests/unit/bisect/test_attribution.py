"""The pattern of checkpoints names the stage; the verdict is about what users run."""

from __future__ import annotations

import itertools

import pytest

from tests.unit.bisect.fakes import (
    AWAY,
    BAD,
    BLIND,
    CRASH,
    EXAMPLE,
    GOOD,
    ROAD,
    failed,
    judgement,
    raising,
    refusing,
    right,
    road,
    step,
    validation,
    wrong,
)  # fmt: skip
from trueport.bisect.road import Step, attribute, contradicted
from trueport.core.taxonomy import Lane, Stage, Symptom, Verdict

STAGES = [stage for stage, _ in ROAD]
BEFORE_RUNTIME = len(ROAD) - 1


def test_all_right_is_faithful():
    told = attribute(road(*[GOOD] * 6))
    assert (told.verdict, told.symptom, told.stage, told.step) == (Verdict.FAITHFUL, None, None, None)


def _expected(pattern):
    """The rule, written down a second time: the first of the bad tail up to the file, else the runtime."""
    *made, runtime = pattern
    if not made[-1] and not runtime:
        return Verdict.FAITHFUL, None
    if not made[-1]:
        return Verdict.DIVERGENT, Stage.RUNTIME
    first = BEFORE_RUNTIME - 1
    while first and made[first - 1]:
        first -= 1
    return Verdict.DIVERGENT, STAGES[first]


PATTERNS = list(itertools.product([False, True], repeat=6))


@pytest.mark.parametrize("pattern", PATTERNS, ids=["".join("-X"[bad] for bad in p) for p in PATTERNS])
def test_every_pattern_of_right_and_wrong(pattern):
    told = attribute(road(*[BAD if bad else GOOD for bad in pattern]))
    assert (told.verdict, told.stage) == _expected(pattern)
    assert told.symptom is (None if told.verdict is Verdict.FAITHFUL else Symptom.WRONG_MODEL)


@pytest.mark.parametrize("place", range(6))
def test_a_stage_that_raises_ends_the_road(place):
    stage, name = ROAD[place]
    steps = [*road(*[GOOD] * 6)[:place], raising(stage, name)]
    told = attribute(steps)
    assert (told.verdict, told.symptom, told.stage) == (Verdict.CRASHED, Symptom.CRASH, stage)
    assert told.step is steps[-1]


def test_a_stage_that_raises_outweighs_what_was_wrong_before():
    steps = [*road(BAD, BAD, *[GOOD] * 4)[:2], raising(Stage.NODE_CONVERSION)]
    assert attribute(steps).stage is Stage.NODE_CONVERSION


@pytest.mark.parametrize("place", range(1, 6))
def test_a_program_that_no_longer_runs_is_a_crash_of_its_stage(place):
    told = attribute(road(*[GOOD] * place, *[CRASH] * (6 - place)))
    assert (told.verdict, told.symptom) == (Verdict.CRASHED, Symptom.CRASH)
    assert told.stage is STAGES[place]


def test_a_runtime_that_refuses_the_file_crashed():
    told = attribute([*road(*[GOOD] * 6)[:-1], refusing()])
    assert (told.verdict, told.stage) == (Verdict.CRASHED, Stage.RUNTIME)


def test_wrong_before_and_refused_after_is_a_crash_of_the_first_bad_stage():
    told = attribute([*road(GOOD, GOOD, GOOD, BAD, BAD, BAD)[:-1], refusing()])
    assert (told.verdict, told.stage) == (Verdict.CRASHED, Stage.OPTIMIZATION)


# ---------------------------------------------------------------------- the checker's opinion


def _with_checker(pattern, *complaints, runtime=None):
    steps = road(*pattern)
    return [*steps[:-1], validation(*complaints), runtime or steps[-1]]


def test_a_complaint_alone_leaves_the_verdict():
    told = attribute(_with_checker([GOOD] * 6, "checker: no"))
    assert (told.verdict, told.stage) == (Verdict.FAITHFUL, None)


def test_a_complaint_is_the_stage_where_the_runtime_refuses_the_file():
    steps = _with_checker([GOOD] * 6, "checker: no", runtime=refusing())
    told = attribute(steps)
    assert (told.verdict, told.stage) == (Verdict.CRASHED, Stage.VALIDATION)
    assert told.step is steps[-2]


def test_no_complaint_and_a_refusal_is_the_runtime():
    assert attribute(_with_checker([GOOD] * 6, runtime=refusing())).stage is Stage.RUNTIME


def test_a_complaint_does_not_hide_a_wrong_conversion():
    assert attribute(_with_checker([GOOD, GOOD, BAD, BAD, BAD, BAD], "checker: no")).stage is Stage.NODE_CONVERSION


def test_a_complaint_does_not_move_a_wrong_value_of_the_runtime_into_a_right_file():
    told = attribute(_with_checker([GOOD] * 5 + [BAD], "checker: no"))
    assert told.verdict is Verdict.DIVERGENT
    assert told.stage in (Stage.RUNTIME, Stage.VALIDATION)


# ---------------------------------------------------------------------- checkpoints that say nothing


@pytest.mark.parametrize("place", range(4))
def test_a_checkpoint_that_could_not_be_judged_is_stepped_over(place):
    pattern = [BAD] * 6
    pattern[place] = BLIND
    assert attribute(road(*pattern)).stage is (STAGES[0] if place else STAGES[1])


def test_a_file_that_could_not_be_judged_leaves_it_to_the_runtime():
    assert attribute(road(GOOD, GOOD, GOOD, GOOD, BLIND, GOOD)).verdict is Verdict.FAITHFUL
    told = attribute(road(GOOD, GOOD, GOOD, GOOD, BLIND, BAD))
    assert (told.verdict, told.stage) == (Verdict.DIVERGENT, Stage.RUNTIME)
    told = attribute(road(GOOD, GOOD, GOOD, BAD, BLIND, BAD))
    assert (told.verdict, told.stage) == (Verdict.DIVERGENT, Stage.OPTIMIZATION)


def test_no_checkpoint_at_all_is_no_pass():
    """A comparison that could not be made is never a pass, wherever it is asked about."""
    assert attribute([]).verdict is not Verdict.FAITHFUL
    assert attribute(road(*[BLIND] * 6)).verdict is not Verdict.FAITHFUL


def _contradicted_at(place, last=right):
    """A checkpoint that raises on an input on which the runtime is right."""
    steps = road(*[GOOD] * 6)
    stage, name = ROAD[place]
    steps[place] = Step(stage, name, judgement(right(EXAMPLE), failed(AWAY)))
    steps[-1] = Step(Stage.RUNTIME, "runtime", judgement(right(EXAMPLE), last(AWAY), lane=Lane.ARITHMETIC))
    return steps


@pytest.mark.parametrize("place", range(5))
def test_a_contradicted_checkpoint_leaves_the_verdict(place):
    steps = _contradicted_at(place)
    assert contradicted(steps[place], steps[-1])
    told = attribute(steps)
    assert (told.verdict, told.stage) == (Verdict.FAITHFUL, None)


@pytest.mark.parametrize("place", range(5))
def test_a_checkpoint_that_raises_where_the_runtime_raises_is_not_contradicted(place):
    steps = _contradicted_at(place, last=failed)
    assert not contradicted(steps[place], steps[-1])


def test_a_contradicted_checkpoint_is_stepped_over():
    steps = road(GOOD, GOOD, BAD, BAD, BAD, BAD)
    steps[-1] = Step(Stage.RUNTIME, "runtime", judgement(right(EXAMPLE), wrong(AWAY), lane=Lane.ARITHMETIC))
    steps[3] = Step(Stage.OPTIMIZATION, "optimized", judgement(failed(EXAMPLE), wrong(AWAY)))
    assert attribute(steps).stage is Stage.NODE_CONVERSION


def test_the_last_step_is_never_contradicted():
    last = step(Stage.RUNTIME, "runtime", CRASH)
    assert not contradicted(last, last)


def test_a_wrong_value_is_not_contradicted_by_a_runtime_in_whose_rounding_it_hides():
    told = attribute(road(GOOD, GOOD, BAD, BAD, BAD, GOOD))
    assert (told.verdict, told.stage) == (Verdict.DIVERGENT, Stage.NODE_CONVERSION)


# ---------------------------------------------------------------------- a file of the user's


def _file(file, runtime):
    return [step(Stage.EXPORT, "file", file), validation(), step(Stage.RUNTIME, "runtime", runtime)]


def test_the_stages_of_a_given_file_cannot_be_told_apart():
    assert attribute(_file(BAD, BAD), whole_file=True).stage is Stage.NOT_DISTINGUISHABLE
    assert attribute(_file(CRASH, CRASH), whole_file=True).stage is Stage.NOT_DISTINGUISHABLE
    assert attribute(_file(BAD, BAD)).stage is Stage.EXPORT


def test_the_runtime_of_a_given_file_can():
    assert attribute(_file(GOOD, BAD), whole_file=True).stage is Stage.RUNTIME
    assert attribute(_file(GOOD, GOOD), whole_file=True).verdict is Verdict.FAITHFUL
