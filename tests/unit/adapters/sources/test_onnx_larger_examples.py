"""A model that cuts its input into windows gets more elements than are drawn at first; a mode gets its constant."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from trueport.adapters.sources import load_subject
from trueport.api.session import Session
from trueport.core.options import CheckOptions
from trueport.onnxgraph.domains import input_domains

WINDOWS = """
<ir_version: 8, opset_import: ["": 17]>
windows (float[N, L] x, float[1, 1, 300] w) => (float[N, 1, M] y)
<float[1, 1, 300] w>
{ one = Constant <value_ints = [1]> () h = Unsqueeze(x, one) y = Conv(h, w) }
"""
MODE = """
<ir_version: 8, opset_import: ["": 17]>
mode (float[N] x, int64 rate) => (float[N] y) {
  wide = Constant <value_int = 16000> ()
  same = Equal(rate, wide)
  y = If (same) <
    then_branch = a () => (float[N] p) { p = Sin(x) },
    else_branch = b () => (float[N] q) { q = Cos(x) }
  >
}
"""
NEVER = """
<ir_version: 8, opset_import: ["": 17]>
never (float[N] x) => (float[N] y) { w = Constant <value_floats = [1.0, 2.0, 3.0]> () y = Add(x, w) }
"""


def saved(text, folder, **weights):
    model = onnx.parser.parse_model(text)
    for name, value in weights.items():
        model.graph.initializer.append(onnx.numpy_helper.from_array(value, name))
        kept = [i for i in model.graph.input if i.name != name]
        del model.graph.input[:]
        model.graph.input.extend(kept)
    path = folder / "model.onnx"
    onnx.save(model, path)
    return str(path)


def test_a_model_that_refuses_few_elements_gets_more(tmp_path):
    text = WINDOWS.replace("<float[1, 1, 300] w>\n", "")
    path = saved(text, tmp_path, w=np.ones((1, 1, 300), np.float32))
    session = Session(load_subject(path), CheckOptions(), lambda _: None)
    (check,) = session.run().checks
    assert session.subject.examples[0].kwargs["x"].shape == (2, 512)
    assert check.verdict == "faithful", check.explanation


def test_sizes_that_the_user_gives_stay(tmp_path):
    text = WINDOWS.replace("<float[1, 1, 300] w>\n", "")
    path = saved(text, tmp_path, w=np.ones((1, 1, 300), np.float32))
    subject = load_subject(path, input_shapes={"x": (1, 20)})
    session = Session(subject, CheckOptions(), lambda _: None)
    assert session.subject.examples[0].kwargs["x"].shape == (1, 20)


def test_a_model_that_accepts_no_size_is_refused_with_the_first(tmp_path):
    from trueport.core.errors import SourceError

    session = Session(load_subject(saved(NEVER, tmp_path)), CheckOptions(), lambda _: None)
    assert session.subject.examples[0].kwargs["x"].shape == (2,)
    with pytest.raises(SourceError, match="its own example"):
        session.run()


def test_both_branches_of_a_mode_are_taken(tmp_path):
    path = saved(MODE, tmp_path)
    assert set(input_domains(onnx.load(path))["rate"].values) == {0, 16000}
    session = Session(load_subject(path), CheckOptions(), lambda _: None)
    session.run()
    assert session.references is not None
    assert {int(s.arrays[1]) for s in session.references.inputs} == {0, 16000}
