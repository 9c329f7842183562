"""A part of a graph as a model of its own computes what the whole computed there."""

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import parser

from trueport.core.errors import UsageError
from trueport.onnxgraph.cut import Cutter

HEAD = '<ir_version: 9, opset_import: ["": 18, "local": 1]> g '
TEXT = """(float[N,3] x, bool c) => (float[N,3] y, float[N,3] e)
<float[3] w = {1, 2, 3}, float[3] unused = {0, 0, 0}> {
    two = Constant <value = float {2}> ()
    double = Mul (w, two)
    a = Mul (x, double)
    e = Exp (a)
    h = Cast <to = 10> (e)
    b = If (c) <then_branch = t () => (float[N,3] p) { u = Add (a, w) \n p = Neg (u) },
                else_branch = f () => (float[N,3] q) { q = Identity (e) }>
    k = local.twice (b)
    back = Cast <to = 1> (h)
    y = Add (k, back)
}
<domain: "local", opset_import: ["": 18]> twice (v) => (r) { r = Add (v, v) }"""
FEEDS = {"x": np.array([[0.1, -0.2, 0.3], [1, 2, -1]], np.float32), "c": np.array(True)}


def run(model: onnx.ModelProto, feeds: dict[str, Any]) -> list[Any]:
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    return ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"]).run(None, feeds)


def recorded(model: onnx.ModelProto, feeds: dict[str, Any]) -> dict[str, Any]:
    shown = onnx.ModelProto.FromString(model.SerializeToString())
    names = [o for n in shown.graph.node for o in n.output]
    extra = [n for n in names if n not in {v.name for v in shown.graph.output}]
    shown.graph.output.extend(onnx.ValueInfoProto(name=n) for n in extra)
    return {**feeds, **dict(zip([v.name for v in shown.graph.output], run(shown, feeds), strict=True))}


@pytest.fixture
def cutter() -> Cutter:
    model = parser.parse_model(HEAD + TEXT)
    return Cutter(model, recorded(model, FEEDS))


@pytest.mark.parametrize("count", [1, 2, 3])
def test_every_part_computes_what_the_whole_does(cutter: Cutter, count: int) -> None:
    values = recorded(parser.parse_model(HEAD + TEXT), FEEDS)
    for first in range(1, len(cutter.nodes) - count + 1):
        numbers = range(first, first + count)
        cut = cutter.cut(numbers)
        onnx.checker.check_model(cut.model, full_check=True)
        found = run(cut.model, cut.feeds)
        for info, value in zip(cut.model.graph.output, found, strict=True):
            assert np.array_equal(value, values[info.name]), (first, info.name)


def test_constants_stay_constants_and_other_values_become_inputs(cutter: Cutter) -> None:
    cut = cutter.cut(cutter.numbers(["a"]))
    assert list(cut.feeds) == ["x"]
    assert [t.name for t in cut.model.graph.initializer] == ["double"]
    assert [n.op_type for n in cut.nodes] == ["Mul"]


def test_what_a_subgraph_takes_from_outside_becomes_an_input(cutter: Cutter) -> None:
    cut = cutter.cut(cutter.numbers(["b"]))
    assert set(cut.feeds) == {"c", "a", "e"}
    assert [t.name for t in cut.model.graph.initializer] == ["w"]


def test_dynamic_axes_stay_dynamic(cutter: Cutter) -> None:
    (x,) = cutter.cut(cutter.numbers(["a"])).model.graph.input
    assert [d.dim_param or d.dim_value for d in x.type.tensor_type.shape.dim] == ["N", 3]


def test_outputs_are_what_nothing_inside_reads_and_outputs_of_the_whole(cutter: Cutter) -> None:
    part = cutter.numbers(["a", "e", "h"])
    assert [o.name for o in cutter.cut(part).model.graph.output] == ["e", "h"]
    assert [o.name for o in cutter.cut(part, shown=["a"]).model.graph.output] == ["a", "e", "h"]
    assert cutter.between(part) == ("a", "e")
    assert cutter.read_elsewhere(part) == ("a", "e")


def test_values_held_in_float64_get_their_own_types() -> None:
    model = parser.parse_model(HEAD + TEXT)
    wide = {n: v.astype(np.float64) if v.dtype.kind == "f" else v for n, v in recorded(model, FEEDS).items()}
    types = {"h": "float16"}
    cut = Cutter(model, wide, {**dict.fromkeys(wide, "float32"), **types, "c": "bool"}).cut([7])
    assert cut.feeds["h"].dtype == np.float16
    onnx.checker.check_model(cut.model, full_check=True)


def test_sequences_at_the_border() -> None:
    model = parser.parse_model(
        HEAD
        + "(float[2] x, int64 i) => (float[2] y) { s = SequenceConstruct (x, x) \n z = SequenceAt (s, i) \n y = Exp (z) }"  # noqa: E501
    )
    feeds = {"x": np.ones(2, np.float32), "i": np.array(1)}
    cut = Cutter(model, recorded(model, feeds)).cut([1])
    assert np.array_equal(run(cut.model, cut.feeds)[0], feeds["x"])


def test_a_value_that_was_not_recorded_is_said(cutter: Cutter) -> None:
    model = parser.parse_model(HEAD + TEXT)
    with pytest.raises(UsageError, match="'k'"):
        Cutter(model, FEEDS).cut([8])


def test_neighbours_follow_values_but_not_constants(cutter: Cutter) -> None:
    (a,) = cutter.numbers(["a"])
    assert {cutter.nodes[i].output[0] for i in cutter.neighbours(a)} == {"e", "b"}
    assert cutter.is_constant(cutter.numbers(["double"])[0])
    assert not cutter.is_constant(a)
