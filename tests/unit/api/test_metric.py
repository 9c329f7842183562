"""`--metric`: the user's own metric on both sides, and flips that rounding does not explain."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import onnx
import pytest

import trueport
from tests.unit.api.models import classifier
from trueport.api.metric import explained
from trueport.core.errors import UsageError
from trueport.core.taxonomy import Kind, Stage, Verdict
from trueport.oracle.compare import ReferenceOutput

METRICS = """
import random
import numpy as np

def accuracy(run, data):
    held = np.load(data)
    hits = 0
    for start in range(0, len(held["x"]), 4):
        (scores,) = run(held["x"][start : start + 4])
        hits += int((scores.argmax(-1) == held["y"][start : start + 4]).sum())
    return hits / len(held["x"])

def raises(run, data):
    raise ValueError("no such column")

def text(run, data):
    return "good"

def wrong_count(run, data):
    return run(1.0, 2.0)

def wrong_type(run, data):
    return run(np.zeros((1, 4), complex))

def random_questions(run, data):
    return float(run(np.random.random_sample((2, 4)) + random.random())[0].sum())

calls = []
def other_questions(run, data):
    calls.append(1)
    return float(run(np.full((1, 4), float(len(calls)), np.float32))[0].sum())

not_callable = 3
"""


@pytest.fixture
def place(tmp_path):
    (tmp_path / "metrics.py").write_text(METRICS)
    rng = np.random.default_rng(0)
    x = rng.standard_normal((10, 4)).astype(np.float32)
    x[0, :3] = 20000.0, 0.0, 15000.0  # far beyond what the check draws from the example
    np.savez(tmp_path / "data.npz", x=x, y=x[:, :3].argmax(-1))
    return tmp_path


def check(place, name, *, shapes=classifier.dynamic_shapes, **settings):
    model, args = classifier()
    result = trueport.check(
        model, args, dynamic_shapes=shapes, isolate=False, samples=1,
        metric=f"{place / 'metrics.py'}:{name}", data=str(place / "data.npz"), **settings,
    )  # fmt: skip
    (made,) = result.checks
    assert trueport.CheckResult.from_json(result.to_json()) == result
    found = [finding for finding in made.findings if finding.kind is Kind.METRIC]
    return made, found[0] if found else None


def candidate(place, nodes: str) -> str:
    text = f"""<ir_version: 9, opset_import: ["" : 18]>
        net (float[batch,4] x) => (float[batch,3] y) {{ {nodes} }}"""
    path = place / "given.onnx"
    onnx.save(onnx.parser.parse_model(text), str(path))
    return str(path)


# The classifier's own function: its first three columns.
RIGHT = (
    "s = Constant<value_ints=[0]>() e = Constant<value_ints=[3]>() a = Constant<value_ints=[1]>() r = Slice(x,s,e,a)"
)


def test_a_right_file_has_the_same_metric(place):
    made, finding = check(place, "accuracy")
    assert made.verdict is Verdict.FAITHFUL
    assert finding.evidence["reference"] == finding.evidence["candidate"] == 1.0
    assert finding.evidence["labels"] == 10
    assert finding.evidence["flipped"] == 0
    assert not finding.material
    assert "The metric is 1 on the source and 1 on the ONNX file" in made.explanation


def test_flips_that_only_the_data_shows_make_it_divergent(place):
    # What lies above a limit far outside of what the check draws loses; the data holds one such row.
    limited = " top = Constant<value_float=17000.0>() over = Greater(r, top) zero = Constant<value_float=0.0>()"
    wrong = candidate(place, f"{RIGHT}{limited} y = Where(over, zero, r)")
    made, finding = check(place, "accuracy", candidate=wrong)
    assert finding.evidence["flipped"] == finding.evidence["unexplained"] == 1
    assert finding.evidence["difference"] == pytest.approx(-0.1)
    assert finding.material
    assert (made.verdict, made.stage) == (Verdict.DIVERGENT, Stage.NOT_DISTINGUISHABLE)
    assert made.findings[0] is finding
    assert "1 of 10 labels flip, 1 of them more than rounding explains" in made.explanation


def test_a_divergent_check_keeps_its_stage(place):
    wrong = candidate(place, RIGHT + " y = Neg(r)")
    made, finding = check(place, "accuracy", candidate=wrong)
    assert made.verdict is Verdict.DIVERGENT
    assert made.findings[0].kind is Kind.VALUE
    assert finding.evidence["unexplained"] == finding.evidence["flipped"] > 5


def test_missing_outputs_are_unexplained_flips(place):
    wrong = candidate(place, RIGHT + " y = ReduceSum<keepdims=1>(r, a)").replace("batch,3", "batch,1")
    _, finding = check(place, "accuracy", candidate=wrong)
    assert finding is None or finding.material


def test_a_metric_that_the_file_cannot_compute_is_no_pass(place):
    made, finding = check(place, "accuracy", shapes=None)  # fixed at two rows; the metric asks for four
    assert made.verdict is Verdict.INCONCLUSIVE
    assert "cannot be computed on the ONNX file: InterfaceError" in finding.message
    assert finding.evidence["candidate"] is None


def test_random_questions_are_the_same_on_both_sides(place):
    _, finding = check(place, "random_questions")
    assert finding.evidence["labels"] == 2


def test_other_questions_are_not_paired(place):
    made, finding = check(place, "other_questions")
    assert "different questions" in finding.message
    assert finding.evidence["labels"] is None
    assert made.verdict is Verdict.FAITHFUL


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("raises", "fails on the source: ValueError: no such column"),
        ("text", "to return a number, got str"),
        ("wrong_count", r"one array for each input of the source \(x\), got 2"),
        ("wrong_type", "expected float32 for input 'x', got complex128"),
        ("not_callable", "to be a function"),
        ("absent", "has no name 'absent'"),
    ],
)
def test_a_metric_that_cannot_be_used_is_an_error(place, name, message):
    with pytest.raises(UsageError, match=message):
        check(place, name)


def output(values, floor, unstable=False) -> ReferenceOutput:
    value = np.asarray(values, np.float64)
    whole = np.full(value.shape, floor)
    return ReferenceOutput("y", "float32", value, whole * 0, whole, np.full(value.shape, unstable), 16)


@pytest.mark.parametrize(
    ("exact", "got", "expected"),
    [
        (output([[1.0, 1.0 + 1e-6, 0.0]], 1e-6), 0, True),  # a near tie
        (output([[1.0, 1.0 + 1e-6, 0.0]], 1e-6), 2, False),  # which explains no third
        (output([[1.0, 1.1, 0.0]], 1e-6), 0, False),
        (output([[1.0, 1.1, 0.0]], 1e-6, unstable=True), 0, True),
        (output([[1.0, np.nan, 0.0]], 1e-6), 0, False),
    ],
)
def test_what_explains_a_flip(exact, got, expected):
    assert explained(exact, np.array([1]), np.array([got])).tolist() == [expected]
    if expected and not exact.unstable.any():
        assert not explained(
            replace(exact, arithmetic_floor=exact.arithmetic_floor * 0), np.array([1]), np.array([got])
        )
