"""What differs between two models that differ in known ways."""

from __future__ import annotations

import math
import time

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper, parser

from trueport.onnxgraph.changes import What, changes
from trueport.onnxgraph.tensor_values import content_key, largest_difference

HEAD = '<ir_version: 10, opset_import: ["": 20]>\n'
CHAIN = "g (float[2,3,4] x) => (float[6,4] y) <int64[2] shape = {-1, 4}, float[1] one = {1.0}> {\n%s\n}"
FULL = "a = Add (x, one)\n t = Transpose <perm = [1, 0, 2]> (a)\n r = Reshape (t, shape)\n y = Softmax <axis = 1> (r)"


def model(body: str = FULL, text: str = CHAIN) -> onnx.ModelProto:
    return parser.parse_model(HEAD + text % body)


def test_equal_models_differ_in_nothing():
    found = changes(model(), model())
    assert found.nothing
    assert found.shared == found.unchanged == ("a", "t", "r", "y")
    assert found.sequence == ()


def test_a_fused_sequence_is_told_as_text_and_as_operators():
    fused = "a = Add (x, one)\n y = com.x.Fused <axis = 1> (a, shape)"
    after = model(fused)
    after.opset_import.add(domain="com.x", version=1)
    found = changes(model(), after)
    assert found.sequence == ("Transpose", "Reshape", "Softmax")
    assert [n.text for n in found.removed] == [
        "Transpose(perm=[1, 0, 2]) a -> t", "Reshape t, shape -> r", "Softmax(axis=1) r -> y",
    ]  # fmt: skip
    assert [n.text for n in found.added] == ["com.x::Fused(axis=1) a, shape -> y"]
    assert (found.shared, found.unchanged) == (("a", "y"), ("a",))
    assert [(d.what, d.name, d.before, d.after) for d in found.differences] == [(What.OPSET, "com.x", "", "1")]


def test_removed_nodes_that_are_no_chain_are_no_sequence():
    body = "a = Relu (x)\n b = Abs (x)\n r = Add (a, b)\n y = Reshape (r, shape)"
    found = changes(model(body), model("r = Neg (x)\n y = Reshape (r, shape)"))
    assert [n.operator for n in found.removed] == ["Relu", "Abs", "Add"]
    assert found.sequence == ()


def test_an_altered_attribute_is_named_and_what_follows_it_is_not_unchanged():
    found = changes(model(), model(FULL.replace("[1, 0, 2]", "[1, 2, 0]")))
    (one,) = found.differences
    assert (one.what, one.name, one.before, one.after) == (What.ATTRIBUTE, "t.perm", "[1, 0, 2]", "[1, 2, 0]")
    assert not found.removed and not found.added
    assert found.unchanged == ("a",)


def test_an_altered_initializer_is_named_with_its_distance_and_its_reader_is_not_blamed():
    after = model(text=CHAIN.replace("{1.0}", "{1.5}"))
    found = changes(model(), after)
    (one,) = found.differences
    assert (one.what, one.name, one.distance) == (What.CONSTANT, "one", 0.5)
    assert (one.before, one.after) == ("float[1] = 1.0", "float[1] = 1.5")
    assert not found.removed and not found.added and not found.unchanged


def test_lifted_renamed_and_shared_constants_are_no_changes():
    before = model("two = Constant <value = float[1] {1.0}> ()\n a = Add (x, one)\n b = Add (a, two)\n"
                   "n = Constant <value_ints = [-1, 4]> ()\n y = Reshape (b, n)")  # fmt: skip
    after = model("a = Add (x, one)\n b = Add (a, one)\n y = Reshape (b, shape)")
    found = changes(before, after)
    assert found.nothing
    assert found.unchanged == ("a", "b", "y")


def test_a_folded_node_is_removed_and_its_reader_stays():
    before = model("two = Add (one, one)\n a = Mul (x, two)\n y = Reshape (a, shape)")
    after = parser.parse_model(
        HEAD + "g (float[2,3,4] x) => (float[6,4] y) <int64[2] shape = {-1, 4}, float[1] two = {2.0}> "
        "{ a = Mul (x, two)\n y = Reshape (a, shape) }"
    )
    found = changes(before, after)
    assert [n.text for n in found.removed] == ["Add one, one -> two"]
    assert not found.added


def test_a_renamed_value_is_no_change_and_neither_is_what_reads_it():
    found = changes(
        model(), model(FULL.replace("t =", "u =").replace("(t,", "(u,").replace("a =", "b =").replace("(a)", "(b)"))
    )
    assert found.nothing
    assert found.shared == ("r", "y")


def test_names_that_occur_twice_are_counted():
    before, after = model(), model()
    before.graph.node.append(before.graph.node[0])
    found = changes(before, after)
    assert [n.text for n in found.removed] == ["Add x, one -> a"]
    assert not found.added


def test_inside_subgraphs_and_functions():
    text = (
        HEAD.replace('"": 20', '"": 20, "f": 1')
        + """g (float[2] x, bool c) => (float[2] y) {
      y = If (c) <then_branch = t () => (float[2] o) { %s }, else_branch = e () => (float[2] p) { p = f.F (x) }>
    }
    <domain: "f", opset_import: ["": %d]> F (x) => (z) { %s }"""
    )
    before = parser.parse_model(text % ("o = Relu (x)", 20, "z = Abs (x)"))
    after = parser.parse_model(text % ("o = Neg (x)", 19, "z = Abs (x)\n w = Exp (x)"))
    after.graph.node[0].name = "a name that the other has not"
    found = changes(before, after)
    assert [(n.body, n.operator) for n in found.removed] == [("then_branch of If 'y'", "Relu")]
    assert sorted((n.body, n.operator) for n in found.added) == [
        ("function 'f:F'", "Exp"),
        ("then_branch of If 'y'", "Neg"),
    ]
    assert [(d.what, d.body, d.before, d.after) for d in found.differences] == [
        (What.OPSET, "function 'f:F'", "20", "19")
    ]
    assert found.unchanged == ()


def test_types_shapes_and_interface():
    before, after = model(), model()
    declare = helper.make_tensor_value_info
    before.graph.value_info.extend([declare("a", 1, [2, 3, 4]), declare("t", 1, [3, 2, 4]), declare("r", 1, ["N", 4])])
    after.graph.value_info.extend([declare("a", 10, [2, 3, 4]), declare("t", 1, [3, 2, 5]), declare("r", 1, [6, 4])])
    after.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "N"
    found = {d.name: (d.what, d.before, d.after) for d in changes(before, after).differences}
    assert found == {
        "x": (What.INTERFACE, "input 0: float[2,3,4]", "input 0: float[N,3,4]"),
        "a": (What.TYPE, "float[2,3,4]", "float16[2,3,4]"),
        "t": (What.SHAPE, "float[3,2,4]", "float[3,2,5]"),
    }


def test_outputs_in_another_order_are_another_interface():
    before, after = model(), model()
    for one, order in ((before, (0, 1)), (after, (1, 0))):
        infos = [one.graph.output[0], helper.make_tensor_value_info("a", 1, [2, 3, 4])]
        infos = [onnx.ValueInfoProto.FromString(i.SerializeToString()) for i in infos]
        del one.graph.output[:]
        one.graph.output.extend([infos[i] for i in order])
    assert {d.what for d in changes(before, after).differences} == {What.INTERFACE}


@pytest.mark.parametrize(
    ("one", "other", "distance"),
    [
        (np.float32([1, 2]), np.float32([1, 2.5]), 0.5),
        (np.float32([1, np.nan]), np.float32([1, np.nan]), 0.0),
        (np.float32([1, np.nan]), np.float32([1, 0]), math.inf),
        (np.float32([np.inf]), np.float32([np.inf]), 0.0),
        (np.int64([2**62 + 1]), np.int64([2**62]), 1.0),
        (np.int64([-(2**63)]), np.int64([2**63 - 1]), 2.0**64),
        (np.float32([1]), np.float32([[1]]), None),
        (np.complex64([1j]), np.complex64([0]), 1.0),
        (np.array([True]), np.array([False]), 1.0),
        (np.zeros(0, np.float32), np.zeros(0, np.float32), 0.0),
    ],
)
def test_the_largest_distance(one, other, distance):
    assert largest_difference(numpy_helper.from_array(one), numpy_helper.from_array(other)) == distance


def test_a_damaged_tensor_is_told_and_raises_nothing():
    before, after = model(), model()
    after.graph.initializer[1].raw_data = b"x"
    (one,) = changes(before, after).differences
    assert (one.name, one.distance) == ("one", None)
    assert "damaged" in one.after


def test_damaged_tensors_with_other_contents_are_not_the_same():
    contents = ((1.0, "a"), (2.0, "a"), (1.0, "b"))
    one, other, named = (onnx.TensorProto(data_type=1, dims=[3], float_data=[v], name=n) for v, n in contents)
    assert content_key(one) != content_key(other)
    assert content_key(one) == content_key(named)


def test_a_call_of_a_function_and_another_opset_are_never_unchanged():
    text = """<ir_version: 8, opset_import: ["": 18, "f": 1]> g (float[2] x) => (float[2] y) { a = Exp (x) y = f.F (a) }
    <domain: "f", opset_import: ["": 18]> F (v) => (z) { z = %s (v) }"""
    before, after = (parser.parse_model(text % name) for name in ("Abs", "Neg"))
    assert changes(before, after).unchanged == ("a",)
    other = parser.parse_model((text % "Abs").replace('"": 18, "f"', '"": 13, "f"'))
    assert changes(before, other).unchanged == ()


def test_a_constant_that_becomes_computed_is_not_unchanged():
    before = parser.parse_model(HEAD + "g (float[1] x) => (float[1] y) <float[1] c = {2.0}> { y = Mul (x, c) }")
    after = parser.parse_model(HEAD + "g (float[1] x) => (float[1] y) { c = Exp (x) y = Mul (x, c) }")
    found = changes(before, after)
    assert [n.operator for n in found.added] == ["Exp"]
    assert found.unchanged == ()


def test_five_thousand_nodes_are_quick():
    def long(last: str) -> onnx.ModelProto:
        nodes = [helper.make_node("Relu", [f"{last}{i}"], [f"{last}{i + 1}"]) for i in range(5000)]
        infos = [helper.make_tensor_value_info(n, 1, [1]) for n in (f"{last}0", f"{last}5000")]
        return helper.make_model(helper.make_graph(nodes, "g", infos[:1], infos[1:]))

    start = time.perf_counter()
    assert changes(long("a"), long("a")).nothing
    assert len(changes(long("a"), long("b")).removed) == 5000
    assert time.perf_counter() - start < 5
