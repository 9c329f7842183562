"""Results are values that JSON can hold and give back; the exit code follows from the verdicts alone."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math

import pytest

from tests.golden import check_results
from trueport.core.errors import StoreError
from trueport.core.result import SCHEMA, CheckResult, Elements, NodeRef, exit_code
from trueport.core.taxonomy import Verdict

F, D, C, I = Verdict.FAITHFUL, Verdict.DIVERGENT, Verdict.CRASHED, Verdict.INCONCLUSIVE  # noqa: E741
NAMES = ("faithful", "divergent", "crashed", "inconclusive")


@pytest.mark.parametrize(
    ("verdicts", "code"),
    [
        ([F], 0),
        ([F, F], 0),
        ([D], 1),
        ([C], 1),
        ([I], 3),
        ([], 3),
        ([F, I], 3),
        ([I, D], 1),
        ([F, C, I], 1),
        ([F, F, D], 1),
    ],
)
def test_exit_code(verdicts, code):
    assert exit_code(verdicts) == code


def test_exit_code_does_not_depend_on_the_order():
    for count in (1, 2, 3):
        for verdicts in itertools.product(Verdict, repeat=count):
            codes = {exit_code(list(order)) for order in itertools.permutations(verdicts)}
            assert len(codes) == 1
            assert (codes == {0}) is (set(verdicts) == {F})


# ---------------------------------------------------------------------- JSON


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("indent", [0, 2, 4])
def test_round_trip(name, indent):
    result = getattr(check_results, name)()
    text = result.to_json(indent=indent)
    assert CheckResult.from_json(text) == result
    assert CheckResult.from_json(text.encode()) == result
    assert CheckResult.from_json(text).to_json(indent=indent) == text


def test_json_names_its_schema():
    assert json.loads(check_results.faithful().to_json())["schema"] == SCHEMA == "trueport.check/1"


def test_json_has_no_nan_and_no_infinity():
    for name in NAMES:
        json.loads(getattr(check_results, name)().to_json(), parse_constant=lambda c: pytest.fail(c))


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_number_that_json_lacks_does_not_come_back_as_one(value):
    """Scores are clipped before they are recorded; what slips through is null, never a small score."""
    text = check_results.result(check_results.check(score=value)).to_json()
    assert json.loads(text)["checks"][0]["score"] is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[]",
        "null",
        "not json",
        '{"schema": "trueport.check/1"}',
        b"\xff\xfe",
    ],
)
def test_what_is_no_result_is_refused(text):
    with pytest.raises(StoreError, match=r"trueport\.check/1"):
        CheckResult.from_json(text)


def test_another_schema_is_refused_by_name():
    text = check_results.faithful().to_json().replace(SCHEMA, "trueport.check/2")
    with pytest.raises(StoreError, match=r"trueport\.check/2"):
        CheckResult.from_json(text)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("checks", 0, "verdict"), "ok"),
        (("checks", 0, "stages", 0, "stage"), "elsewhere"),
        (("checks", 0, "score"), "0"),
        (("exit_code",), "0"),
        (("subject", "inputs"), None),
        (("checks",), None),
    ],
)
def test_a_damaged_result_is_refused(path, value):
    document = json.loads(check_results.faithful().to_json())
    place = document
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    with pytest.raises(StoreError):
        CheckResult.from_json(json.dumps(document))


def test_what_a_later_version_added_is_ignored():
    document = json.loads(check_results.faithful().to_json())
    document["new"] = document["checks"][0]["new"] = {"a": 1}
    assert CheckResult.from_json(json.dumps(document)) == check_results.faithful()


# ---------------------------------------------------------------------- assert_faithful


def test_faithful_passes():
    check_results.faithful().assert_faithful()


@pytest.mark.parametrize("name", NAMES[1:])
def test_everything_else_fails_with_its_explanation(name):
    result = getattr(check_results, name)()
    with pytest.raises(AssertionError) as caught:
        result.assert_faithful()
    bad = [c for c in result.checks if c.verdict is not F]
    assert all(c.explanation in str(caught.value) and c.repeat in str(caught.value) for c in bad)


def test_nothing_checked_fails():
    with pytest.raises(AssertionError, match="nothing was checked"):
        check_results.result().assert_faithful()


def test_values_are_frozen():
    for value in (check_results.faithful(), check_results.check(), Elements(), NodeRef("n", "Add")):
        field = dataclasses.fields(value)[0].name
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(value, field, None)
