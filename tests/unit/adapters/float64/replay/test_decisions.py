"""Decisions that rounding may take either way are told from those that it cannot touch."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper, parser

from trueport.adapters.float64.onnx import Float64Evaluator
from trueport.adapters.float64.onnx.dialect import ONNX
from trueport.adapters.float64.replay.source import Replay
from trueport.oracle.noise import ALARM, SCREEN


def reference(signature, body, *, draws=ALARM, **feeds):
    model = parser.parse_model(f'<ir_version: 9, opset_import: ["": 20]> g {signature} {{ {body} }}')
    return Replay(Float64Evaluator(model), ONNX, 0).reference(feeds, 0, draws)


def f32(*values):
    return np.asarray(values, np.float32)


def test_a_decision_on_exact_values_is_stable():
    made = reference("(float[3] x) => (float[3] y)", "y = Floor(x)", x=f32(1.0, 2.0, 2.5))
    assert not made.outputs[0].unstable.any()


def test_a_decision_next_to_a_jump_is_unstable_and_both_outcomes_are_known():
    # 0.1 * 10 is 1 up to rounding: its floor is 0 or 1.
    made = reference(
        "(float[2] x) => (float[2] y)",
        "t = Constant<value_float = 10.0>() z = Mul(x, t) y = Floor(z)",
        x=f32(0.1, 0.25),
    )
    output = made.outputs[0]
    assert output.unstable.tolist() == [True, False]
    assert {float(other[0]) for other in (*output.others, output.value)} == {0.0, 1.0}


def test_what_depends_on_a_decision_is_unstable_too():
    made = reference(
        "(float[2] x) => (float[2] y)",
        "t = Constant<value_float = 10.0>() z = Mul(x, t) f = Floor(z) y = Mul(f, t)",
        x=f32(0.1, 0.25),
    )
    assert made.outputs[0].unstable.tolist() == [True, False]


@pytest.mark.parametrize("number", [1e10, np.nan, -np.inf])
def test_a_cast_beyond_the_integer_type_is_undefined(number):
    made = reference("(float[2] x) => (int32[2] y)", "y = Cast<to = 6>(x)", x=f32(number, 3.5))
    assert made.outputs[0].unstable.tolist() == [True, False]


def test_a_cast_between_floating_point_types_is_no_decision():
    made = reference("(float[1] x) => (float16[1] y)", "y = Cast<to = 10>(x)", x=f32(1e-3))
    assert not made.outputs[0].unstable.any()


def test_a_near_tie_of_the_largest_is_unstable():
    signature = "(float[1,3] x) => (int64[1,1] y)"
    body = "t = Constant<value_float = 3.0>() z = Div(x, t) y = ArgMax<axis = 1>(z)"
    near = np.nextafter(np.float32(1), np.float32(2))
    assert reference(signature, body, x=np.asarray([[1.0, near, 0.5]], np.float32)).outputs[0].unstable.all()
    assert not reference(signature, body, x=np.asarray([[1.0, 2.0, 0.5]], np.float32)).outputs[0].unstable.any()


def test_values_of_a_selection_stay_comparable_at_a_tie():
    signature = "(float[4] x, int64[1] k) => (float[2] v, int64[2] i)"
    body = "t = Constant<value_float = 3.0>() z = Div(x, t) v, i = TopK(z, k)"
    near = np.nextafter(np.float32(2), np.float32(3))
    made = reference(signature, body, x=f32(2.0, near, 0.5, 0.25), k=np.asarray([2]))
    values, places = made.outputs
    assert not values.unstable.any()
    assert places.unstable.all()


def test_a_remainder_keeps_its_quotient_under_noise():
    body = "t = Exp(x) z = Mod<fmod = 1>(t, y)"
    made = reference("(float[1] x, float[1] y) => (float[1] z)", body, x=f32(2.3), y=f32(2.0))
    output = made.outputs[0]
    assert not output.unstable.any()
    assert 0 < output.arithmetic_floor[0] < 1e-5


def test_a_branch_that_hangs_on_rounding_makes_everything_unstable():
    model = parser.parse_model("""
        <ir_version: 9, opset_import: ["": 20]>
        g (float[1] x) => (float[1] y) {
            t = Constant<value_float = 10.0>()
            one = Constant<value_float = 1.0>()
            z = Mul(x, t)
            c = Less(z, one)
            s = Squeeze(c)
            y = If(s) <
                then_branch = a () => (float[1] p) { p = Exp(z) },
                else_branch = b () => (float[1] q) { q = Neg(z) }
            >
        }""")
    made = Replay(Float64Evaluator(model), ONNX, 0).reference({"x": f32(0.1)}, 0, ALARM)
    assert made.outputs[0].unstable.all()
    assert not Replay(Float64Evaluator(model), ONNX, 0).reference({"x": f32(0.3)}, 0, SCREEN).outputs[0].unstable.any()


COUNTED = """
    <ir_version: 9, opset_import: ["": 20]>
    g (float x) => (float y) {
        n = Cast<to = 7>(x)
        one = Constant<value_float = 1.0>()
        y = Loop(n, , one) <body = b (int64 i, bool c, float s) => (bool d, float t) { d = Identity(c) t = Add(s, s) }>
    }"""


@pytest.mark.parametrize("number", [np.inf, np.nan, 1e30])
def test_a_loop_whose_number_of_turns_is_undefined_ends(number):
    model = parser.parse_model(COUNTED)
    made = Replay(Float64Evaluator(model), ONNX, 0).reference({"x": np.asarray(number, np.float32)}, 0, SCREEN)
    assert made.outputs[0].unstable.all()


def test_a_loop_whose_number_of_turns_is_certain_is_stable():
    model = parser.parse_model(COUNTED)
    made = Replay(Float64Evaluator(model), ONNX, 0).reference({"x": np.asarray(5.5, np.float32)}, 0, SCREEN)
    assert made.outputs[0].value == 32
    assert not made.outputs[0].unstable.any()


@pytest.mark.parametrize(("number", "open_"), [(np.nan, True), (5.5, False)])
def test_a_path_that_is_undefined_leaves_the_result_open(number, open_):
    model = parser.parse_model(COUNTED)
    made = Replay(Float64Evaluator(model), ONNX, 0).reference({"x": np.asarray(number, np.float32)}, 0, SCREEN)
    assert made.ties is open_


@pytest.mark.parametrize(
    ("code", "inside", "outside"), [(25, 3.4, 3.6), (26, -2.4, -2.6), (21, 15.4, 15.6), (22, 7.4, 7.6)]
)
def test_a_cast_beyond_a_type_of_less_than_a_byte_is_undefined(code, inside, outside):
    model = parser.parse_model('<ir_version: 12, opset_import: ["": 25]> g (float[2] x) => (int8[2] y) { z = Cast(x) }')
    graph = model.graph
    graph.node[0].attribute.append(helper.make_attribute("to", code))
    graph.node.append(helper.make_node("Cast", ["z"], ["y"], to=3))
    made = Replay(Float64Evaluator(model), ONNX, 0).reference({"x": f32(inside, outside)}, 0, SCREEN)
    assert made.outputs[0].unstable.tolist() == [False, True]
