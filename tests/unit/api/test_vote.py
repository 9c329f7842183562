"""A wrong result that one runtime gives is its own; three that agree against float64 put float64 in doubt."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tests.golden.check_results import divergent
from tests.unit.bisect.fakes import EXAMPLE, FakeSource
from trueport.api.vote import Voter, settle
from trueport.bisect.judge import Judgement, Trial
from trueport.bisect.references import collect
from trueport.bisect.road import Step
from trueport.core.taxonomy import Kind, Lane, Stage, Status, Symptom, Verdict
from trueport.oracle.compare import Comparison

REFERENCES = collect(FakeSource(), [EXAMPLE], lambda _: None)
CHECK = divergent().checks[0]


def voter(runtime, values=None):
    """Returns a runtime that gives wrong values, or that is right."""
    if values is None:
        right = Trial(EXAMPLE, (Comparison(None, 0.1, compared=3),))
        steps = [Step(Stage.RUNTIME, runtime, Judgement(Status.OK, Lane.ARITHMETIC, (right,)))]
        check = replace(CHECK, runtime=runtime, verdict=Verdict.FAITHFUL, stage=None, symptom=None, findings=())
        return Voter(check, steps)
    wrong = Trial(
        EXAMPLE,
        (Comparison(Kind.VALUE, 1e6, (0,), 0.0, 1.0, 1e-6, 3, 0, 1),),
        outputs=(np.asarray(values, np.float32),),
    )
    steps = [Step(Stage.RUNTIME, runtime, Judgement(Status.DIVERGED, Lane.ARITHMETIC, (wrong,)))]
    check = replace(
        CHECK, runtime=runtime, verdict=Verdict.DIVERGENT, stage=Stage.RUNTIME, symptom=Symptom.WRONG_MODEL, findings=()
    )
    return Voter(check, steps)


def votes(check):
    return [finding for finding in check.findings if finding.kind is Kind.VOTE]


def test_one_runtime_needs_no_vote():
    one = voter("a", [9.0, 1.0, 2.0])
    assert settle([one], REFERENCES) == [one.check]


def test_the_odd_one_out_is_named():
    settled = settle([voter("a", [9.0, 1.0, 2.0]), voter("b"), voter("c")], REFERENCES)
    assert [c.verdict for c in settled] == [Verdict.DIVERGENT, Verdict.FAITHFUL, Verdict.FAITHFUL]
    (finding,) = votes(settled[0])
    assert finding.evidence == {"agree_with_float64": ["b", "c"], "differ_likewise": []}
    assert "a alone differs" in finding.message


def test_three_that_agree_against_float64_decide_nothing():
    same = [9.0, 1.0, 2.0]
    settled = settle([voter(name, same) for name in "abc"], REFERENCES)
    assert [c.verdict for c in settled] == [Verdict.INCONCLUSIVE] * 3
    assert all(c.stage is None and c.symptom is None for c in settled)
    assert "float64 evaluation is wrong" in settled[0].explanation


def test_two_that_agree_do_not_outvote_float64():
    settled = settle([voter("a", [9.0, 1.0, 2.0]), voter("b", [9.0, 1.0, 2.0])], REFERENCES)
    assert [c.verdict for c in settled] == [Verdict.DIVERGENT] * 2
    assert votes(settled[0])[0].evidence["differ_likewise"] == ["b"]


def test_three_that_are_wrong_in_different_ways_stay_wrong():
    settled = settle([voter(name, [float(i + 5), 1.0, 2.0]) for i, name in enumerate("abc")], REFERENCES)
    assert [c.verdict for c in settled] == [Verdict.DIVERGENT] * 3


def test_outputs_of_another_shape_do_not_agree():
    settled = settle([voter("a", [9.0]), voter("b", [9.0, 1.0, 2.0]), voter("c", [8.0])], REFERENCES)
    assert [c.verdict for c in settled] == [Verdict.DIVERGENT] * 3


def test_a_wrong_file_is_not_put_to_the_vote():
    file = voter("a", [9.0, 1.0, 2.0])
    file = replace(file, check=replace(file.check, stage=Stage.NODE_CONVERSION))
    assert settle([file, voter("b")], REFERENCES)[0] == file.check
