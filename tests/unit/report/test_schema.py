"""The shipped schema is the generated one, and accepts every result and nothing that only looks like one."""

from __future__ import annotations

import json
import math

import jsonschema
import pytest

from tests.golden import check_results
from trueport.core.result import CheckResult
from trueport.report.schema import generate, generate_text, shipped_text

RESULTS = ("faithful", "divergent", "crashed", "inconclusive")


@pytest.fixture(scope="module")
def validator():
    schema = json.loads(shipped_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def test_shipped_file_is_the_generated_one():
    assert shipped_text() == generate_text(), (
        "write it anew: python -c 'from trueport.report import schema; print(schema.generate_text(), end=\"\")'"
        " > src/trueport/report/check.schema.json"
    )


@pytest.mark.parametrize("name", RESULTS)
def test_results_are_valid_and_come_back(name, validator):
    result = getattr(check_results, name)()
    text = result.to_json()
    validator.validate(json.loads(text))
    assert CheckResult.from_json(text) == result


def test_an_unbounded_score_is_a_number(validator):
    document = json.loads(check_results.divergent().to_json())
    assert document["checks"][0]["score"] == 1e308
    assert math.isfinite(document["checks"][0]["stages"][6]["score"])


@pytest.mark.parametrize(
    "damage",
    [
        lambda d: d.pop("schema"),
        lambda d: d.update(schema="trueport.check/2"),
        lambda d: d.update(exit_code=2),
        lambda d: d.pop("checks"),
        lambda d: d["checks"][0].update(verdict="passed"),
        lambda d: d["checks"][0].pop("stages"),
        lambda d: d["checks"][0]["stages"][0].update(status="skipped"),
        lambda d: d["checks"][0].update(score="0.1"),
    ],
)
def test_damage_is_seen(damage, validator):
    document = json.loads(check_results.faithful().to_json())
    damage(document)
    assert not validator.is_valid(document)


def test_additions_are_accepted(validator):
    document = json.loads(check_results.faithful().to_json())
    document["checks"][0]["new"] = 1
    assert validator.is_valid(document)


def test_every_definition_is_described():
    assert not [name for name, definition in generate()["$defs"].items() if not definition.get("description")]
