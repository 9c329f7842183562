"""A worker that is lost in the search for a place does not take the verdict along."""

from __future__ import annotations

import msgspec

from tests.golden.check_results import divergent
from trueport.api.afterlife import lost_check
from trueport.core.options import CheckOptions
from trueport.core.taxonomy import Kind, Verdict
from trueport.isolation import Ending, Outcome

CHECK = divergent().checks[0]


def test_the_verdict_before_the_search_stands() -> None:
    begun = {"event": "check-begins", "converter": CHECK.converter, "runtime": CHECK.runtime}
    events = (begun, {"event": "locating", "check": msgspec.to_builtins(CHECK)})
    outcome = Outcome(Ending.TIMEOUT, events=events, elapsed_s=600.0)
    check = lost_check(outcome, CheckOptions(), "model.py")
    assert (check.verdict, check.stage, check.findings[:-1]) == (CHECK.verdict, CHECK.stage, CHECK.findings)
    assert check.findings[-1].kind is Kind.NOT_LOCATED
    assert "did not finish within 600 s while trueport searched for the place" in check.findings[-1].message


def test_a_search_of_an_earlier_check_says_nothing_about_a_later_one() -> None:
    plain = msgspec.to_builtins(CHECK)
    events = (
        {"event": "locating", "check": plain},
        {"event": "check", "check": plain},
        {"event": "check-begins", "converter": "torch-script", "runtime": "onnxruntime"},
        {"event": "stage", "stage": "node-conversion", "checkpoint": "x"},
    )
    check = lost_check(Outcome(Ending.SIGNAL, events=events, signal="SIGSEGV"), CheckOptions(), "model.py")
    assert (check.verdict, check.converter) == (Verdict.CRASHED, "torch-script")
