"""Save then load is the identity, whatever strings and numbers a model brought in."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from tests.laws.strategies import LAW, RESULTS
from trueport.core.result import CheckResult, exit_code
from trueport.core.taxonomy import Verdict


@LAW
@given(RESULTS)
def test_round_trip(result):
    text = result.to_json()
    assert CheckResult.from_json(text) == result
    assert CheckResult.from_json(text).to_json() == text


@LAW
@given(RESULTS)
def test_json_is_ordinary(result):
    document = json.loads(result.to_json())
    assert document["exit_code"] == result.exit_code
    assert len(document["checks"]) == len(result.checks)


@LAW
@given(st.lists(st.sampled_from(Verdict), max_size=5))
def test_exit_code_is_zero_only_if_all_are_faithful(verdicts):
    code = exit_code(verdicts)
    assert (code == 0) is (bool(verdicts) and set(verdicts) == {Verdict.FAITHFUL})
    assert code in (0, 1, 3)
    assert exit_code(verdicts[::-1]) == code


@LAW
@given(st.lists(st.sampled_from(Verdict), min_size=1, max_size=5), st.sampled_from(Verdict))
def test_one_more_check_never_makes_a_failure_good(verdicts, more):
    if exit_code(verdicts) == 1:
        assert exit_code([*verdicts, more]) == 1
    if exit_code(verdicts) != 0:
        assert exit_code([*verdicts, more]) != 0
