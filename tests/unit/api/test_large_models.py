"""What makes a model large is what a run costs: many weights, or few weights over many positions."""

from __future__ import annotations

import onnx
import pytest

from trueport.adapters.sources import load_subject
from trueport.api import session
from trueport.core.options import CheckOptions

WIDE = """
<ir_version: 8, opset_import: ["": 17]>
wide (float[N, 3, 8, 8] x) => (float[N, 3, 8, 8] y) { h = Relu(x) y = Sigmoid(h) }
"""


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "wide.onnx"
    onnx.save(onnx.parser.parse_model(WIDE), path)
    return load_subject(str(path))


def test_what_a_run_computes_is_counted(model):
    assert session.Session(model, CheckOptions(), lambda _: None).source.computed == 2 * (2 * 3 * 8 * 8)


def test_a_model_without_weights_is_large_by_what_it_computes(model, monkeypatch):
    assert not session.Session(model, CheckOptions(), lambda _: None).large
    monkeypatch.setattr(session, "DEAR", 100)
    assert session.Session(model, CheckOptions(), lambda _: None).large
    assert not session.Session(model, CheckOptions(samples=5), lambda _: None).large


def test_the_finding_says_what_made_it_large(model, monkeypatch):
    monkeypatch.setattr(session, "DEAR", 100)
    (check,) = session.Session(model, CheckOptions(), lambda _: None).run().checks
    (said,) = [f.message for f in check.findings if f.kind == "fewer-inputs"]
    assert "numbers in a run" in said
    assert check.verdict == "faithful"


SATURATED = """
<ir_version: 8, opset_import: ["": 17]>
saturated (float[N, 6] x) => (float[N, 6] y) {
  far = Constant <value_float = 1000.0> ()
  a = Mul(x, far)
  b = Neg(a)
  y = Tanh(b)
}
"""


def test_what_saturates_at_usual_values_is_looked_at_with_small_ones(tmp_path):
    path = tmp_path / "saturated.onnx"
    onnx.save(onnx.parser.parse_model(SATURATED), path)
    run = session.Session(load_subject(str(path)), CheckOptions(), lambda _: None)
    run.run()
    assert [s.regime for s in run.observed] == ["example", "redrawn", "small"]
    assert run.unseen == []
