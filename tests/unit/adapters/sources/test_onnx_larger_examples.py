"""What is drawn for a model that refuses the first try, and what its comparisons say about its integers."""

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
windows (float[N, L] x) => (float[N, 1, M] y)
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
STATE = """
<ir_version: 8, opset_import: ["": 17]>
state (float[T, batch, 3] x, float[1, 1, 4] h) => (float[1, batch, 4] y) { _, y = GRU<hidden_size = 4>(x, w, r, , , h) }
"""
ONE_HOT = """
<ir_version: 8, opset_import: ["": 17]>
one_hot (int32[N, 8] bytes) => (float[N, 8, 257] y) {
  last = Constant <value_ints = [2]> ()
  column = Unsqueeze(bytes, last)
  same = Equal(column, all)
  y = Cast<to = 1>(same)
}
"""
INVERTED = """
<ir_version: 8, opset_import: ["": 17]>
inverted (float[N, 5] x, float[N, 5] keep) => (float[N, 5] y) {
  one = Constant <value_float = 1.0> () low = Constant <value_float = LOW> ()
  a = Sub(one, keep) b = Mul(a, low) c = Add(x, b) y = Softmax(c)
}
"""
NEVER = """
<ir_version: 8, opset_import: ["": 17]>
never (float[N] x) => (float[M] y) { to = Constant <value_ints = [7, 7]> () y = Reshape(x, to) }
"""


def saved(text, folder, **weights):
    model = onnx.parser.parse_model(text)
    for name, value in weights.items():
        model.graph.initializer.append(onnx.numpy_helper.from_array(value, name))
    path = folder / "model.onnx"
    onnx.save(model, path)
    return str(path)


def test_a_model_that_refuses_few_elements_gets_more(tmp_path):
    path = saved(WINDOWS, tmp_path, w=np.ones((1, 1, 300), np.float32))
    session = Session(load_subject(path), CheckOptions(), lambda _: None)
    (check,) = session.run().checks
    assert session.subject.examples[0].kwargs["x"].shape == (1, 512)
    assert check.verdict == "faithful", check.explanation


def test_sizes_that_the_user_gives_stay(tmp_path):
    path = saved(WINDOWS, tmp_path, w=np.ones((1, 1, 300), np.float32))
    subject = load_subject(path, input_shapes={"x": (1, 20)})
    session = Session(subject, CheckOptions(), lambda _: None)
    assert session.subject.examples[0].kwargs["x"].shape == (1, 20)


def test_a_model_that_accepts_no_size_is_refused_with_the_first(tmp_path):
    from trueport.core.errors import SourceError

    session = Session(load_subject(saved(NEVER, tmp_path)), CheckOptions(), lambda _: None)
    assert session.subject.examples[0].kwargs["x"].shape == (2,)
    with pytest.raises(SourceError, match="its own example"):
        session.run()


def test_a_state_for_one_sequence_gets_a_batch_of_one(tmp_path):
    rng = np.random.default_rng(0)
    path = saved(
        STATE, tmp_path, w=rng.normal(size=(1, 12, 3)).astype(np.float32),
        r=rng.normal(size=(1, 12, 4)).astype(np.float32),
    )  # fmt: skip
    (check,) = Session(load_subject(path), CheckOptions(), lambda _: None).run().checks
    assert check.verdict == "faithful", check.explanation


def test_both_branches_of_a_mode_are_taken(tmp_path):
    path = saved(MODE, tmp_path)
    assert set(input_domains(onnx.load(path))["rate"].values) == {0, 16000}
    session = Session(load_subject(path), CheckOptions(), lambda _: None)
    session.run()
    assert session.references is not None
    assert {int(s.arrays[1]) for s in session.references.inputs} == {0, 16000}


def test_what_is_one_hot_encoded_covers_the_range():
    model = onnx.parser.parse_model(ONE_HOT)
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.arange(257, dtype=np.int32), "all"))
    (domain,) = input_domains(model).values()
    assert (domain.low, domain.high) == (0, 256)


@pytest.mark.parametrize(("low", "values"), [(-1e4, (0, 1)), (-1.0, None)])
def test_one_minus_what_hides_positions_is_a_mask(low, values):
    text = INVERTED.replace("LOW", str(low))
    domain = input_domains(onnx.parser.parse_model(text)).get("keep")
    assert (domain.values if domain is not None else None) == values
