"""What an input may hold is told by the operators that read it, also behind those that only move values."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper, parser

from trueport.core.domain import DomainKind
from trueport.onnxgraph.domains import input_domains
from trueport.onnxgraph.shapes import known_dims
from trueport.onnxgraph.size_hints import size_hints


def _domains(text):
    return input_domains(_model(text))


def _model(text):
    return parser.parse_model(f'<ir_version: 8, opset_import: ["": 18]> g {text}')


BOUNDS = {
    "Gather": ("(float[7,3] t, int64[2] i) => (float[2,3] y) { y = Gather(t, i) }", 0, 6),
    "Gather along another axis": ("(float[7,3] t, int64[2] i) => (float[7,2] y) { y = Gather<axis=1>(t, i) }", 0, 2),
    "behind a cast and a reshape": (
        "(float[7,3] t, int32[4] i) => (float[N] y) { a = Cast<to=7>(i) s = Constant<value_ints=[2,2]>() "
        "b = Reshape(a, s) y = Gather(t, b) }",
        0,
        6,
    ),
    "two tables": (
        "(float[7,3] t, float[4,3] u, int64[2] i) => (float[2,3] y) "
        "{ a = Gather(t, i) b = Gather(u, i) y = Add(a, b) }",
        0,
        3,
    ),
    "GatherElements": ("(float[5,3] t, int64[2,3] i) => (float[2,3] y) { y = GatherElements(t, i) }", 0, 4),
    "GatherND": ("(float[5,3] t, int64[2,2] i) => (float[2] y) { y = GatherND(t, i) }", 0, 2),
    "Acos": ("(float[2] i) => (float[2] y) { y = Acos(i) }", -1, 1),
    "Acosh": ("(float[2] i) => (float[2] y) { y = Acosh(i) }", 1, None),
    "Bernoulli": ("(float[2] i) => (float[2] y) { y = Bernoulli(i) }", 0, 1),
    "OneHot": (
        "(int64[2] i, float[2] v) => (float[2,5] y) { d = Constant<value=int64 {5}>() y = OneHot(i, d, v) }",
        0,
        4,
    ),
    "inverse sigmoid": (
        "(float[2] i) => (float[2] y) { o = Constant<value=float {1}>() s = Sub(o, i) d = Div(i, s) y = Log(d) }",
        1e-3,
        1 - 1e-3,
    ),
}


@pytest.mark.parametrize("case", BOUNDS)
def test_bounds(case):
    text, low, high = BOUNDS[case]
    domain = _domains(text)["i"]
    assert (domain.low, domain.high) == (low, high)


def test_nothing_is_told_where_every_value_will_do():
    assert _domains("(float[2] a, float[2] b) => (float[2] y) { y = Add(a, b) }") == {}


def test_what_is_computed_is_not_restricted():
    assert _domains("(float[2] a) => (float[2] y) { e = Exp(a) y = Log(e) }") == {}


def test_an_index_into_a_dynamic_axis():
    domain = _domains("(float[N,3] t, int64[2] i) => (float[2,3] y) { y = Gather(t, i) }")["i"]
    assert (domain.high_symbol, domain.high_offset) == ("N", -1)
    unnamed = _domains("(float[?,3] t, int64[2] i) => (float[2,3] y) { y = Gather(t, i) }")["i"]
    assert unnamed.high_symbol == "t:0"


def test_the_length_of_a_sequence():
    text = (
        "(float[5,2,3] x, float[1,16,3] w, float[1,16,4] r, int32[2] n) => (float[5,1,2,4] y) "
        "{ y = LSTM<hidden_size=4>(x, w, r, , n) }"
    )
    domain = _domains(text)["n"]
    assert (domain.kind, domain.low, domain.high) == (DomainKind.LENGTH, 1, 5)


DEFAULTS = {
    "Reshape": ("(float[2,6] x, int64[2] s) => (float[3,4] y) { y = Reshape(x, s) }", (3, 4)),
    "Expand": ("(float[1,6] x, int64[2] s) => (float[3,6] y) { y = Expand(x, s) }", (3, 6)),
    "Tile": ("(float[1,6] x, int64[2] s) => (float[3,6] y) { y = Tile(x, s) }", (3, 1)),
    "Pad": ("(float[2,6] x, int64[4] s) => (float[3,6] y) { y = Pad(x, s) }", (0, 0, 1, 0)),
    "TopK": ("(float[2,6] x, int64[1] s) => (float[2,4] y, int64[2,4] i) { y, i = TopK(x, s) }", (4,)),
    "Unsqueeze": ("(float[2] x, int64[1] s) => (float[1,2] y) { y = Unsqueeze(x, s) }", (0,)),
    "Squeeze": ("(float[2,1] x, int64[1] s) => (float[2] y) { y = Squeeze(x, s) }", (1,)),
    "Split": ("(float[6] x, int64[2] s) => (float[2] y, float[4] z) { y, z = Split(x, s) }", (2, 4)),
    "ConstantOfShape": ("(int64[2] s) => (float[3,4] y) { y = ConstantOfShape(s) }", (3, 4)),
}


@pytest.mark.parametrize("case", DEFAULTS)
def test_settings_are_fixed_at_a_value_that_fits_the_declared_output(case):
    text, default = DEFAULTS[case]
    domain = _domains(text)["s"]
    assert (domain.kind, domain.fixed, domain.default) == (DomainKind.SETTING, True, default)


MASKS = {
    "turned to booleans": "(float[2] x, int64[2] m) => (float[2] y) { b = Cast<to=9>(m) y = Where(b, x, x) }",
    "subtracted from one": (
        "(float[2] x, int64[2] m) => (float[2] y) "
        "{ f = Cast<to=1>(m) o = Constant<value=float {1}>() s = Sub(o, f) y = Add(x, s) }"
    ),
}


@pytest.mark.parametrize("case", MASKS)
def test_masks(case):
    domain = _domains(MASKS[case])["m"]
    assert (domain.kind, domain.values) == (DomainKind.MASK, (0, 1))


def test_through_a_function():
    text = (
        '<ir_version: 8, opset_import: ["": 18, "f": 1]> g (float[2] x) => (float[2] y) { y = f.root(x) }'
        '<domain: "f", opset_import: ["": 18]> root (a) => (b) { b = Sqrt(a) }'
    )
    assert input_domains(parser.parse_model(text))["x"].low == 0


def test_into_a_graph_inside():
    model = _model("(float[2] x, bool c) => (float[2] y) { y = Identity(x) }")
    inner = helper.make_graph(
        [helper.make_node("Log", ["x"], ["z"])], "b", [], [helper.make_tensor_value_info("z", TensorProto.FLOAT, [2])]
    )
    model.graph.node[0].CopyFrom(helper.make_node("If", ["c"], ["y"], then_branch=inner, else_branch=inner))
    assert input_domains(model)["x"].low > 0


def test_a_vector_of_huge_size_costs_nothing():
    model = _model("(float[1] x, float[4000000000] w) => (float[N] y) { y = Add(x, w) }")
    assert known_dims(model)["w"] == (4_000_000_000,)
    assert input_domains(model) == {}


def test_channels_come_from_the_weights():
    model = _model("(float[?,?,?,?] x) => (float[?,?,?,?] y) { y = Conv<group=2>(x, w) }")
    model.graph.initializer.append(numpy_helper.from_array(np.ones((4, 3, 1, 1), np.float32), "w"))
    assert size_hints(model) == {("x", 1): 6}
