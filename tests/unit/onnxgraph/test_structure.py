"""A graph is followed only where every name is defined once, nothing is circular, and every tensor is what it says."""

from __future__ import annotations

import itertools
import time

import numpy as np
import pytest
from onnx import ModelProto, helper, numpy_helper, parser

from trueport.core.errors import UsageError
from trueport.onnxgraph.structure import prepare


def _model(body, opset=18, ir=8):
    return parser.parse_model(
        f'<ir_version: {ir}, opset_import: ["": {opset}]> g (float[3] x) => (float[3] y) {{ {body} }}'
    )


BAD = {
    "a cycle": ("a = Add(x, b) b = Relu(a) y = Abs(b)", r"one of 2 nodes: Relu 'b' -> Add 'a' -> Relu 'b'"),
    "a node that reads itself": ("a = Add(x, a) y = Abs(a)", r"one of 1 nodes: Add 'a' -> Add 'a'"),
    "an undefined name": ("y = Add(x, q)", r"'q', which Add 'y' of the graph reads.*no definition"),
    "a missing output": ("z = Relu(x)", r"output 'y' of the graph to be computed"),
}


@pytest.mark.parametrize("case", BAD)
def test_graphs_that_cannot_be_followed(case):
    body, message = BAD[case]
    with pytest.raises(UsageError, match=message):
        prepare(_model(body), "m.onnx")


def test_a_value_defined_twice_names_its_nodes():
    model = _model("y = Relu(x)")
    model.graph.node.append(helper.make_node("Abs", ["x"], ["y"], "second"))
    with pytest.raises(UsageError, match=r"'y' more than once by Relu 'y', Abs 'second'"):
        prepare(model, "m.onnx")


@pytest.mark.parametrize("field", ["input", "initializer"])
def test_other_names_defined_twice(field):
    model = _model("y = Add(x, w)")
    model.graph.initializer.append(numpy_helper.from_array(np.ones(3, np.float32), "w"))
    values = getattr(model.graph, field)
    values.append(values[0])
    with pytest.raises(UsageError, match="more than once"):
        prepare(model, "m.onnx")


def test_an_initializer_may_be_an_input():
    model = _model("y = Add(x, w)")
    model.graph.initializer.append(numpy_helper.from_array(np.ones(3, np.float32), "w"))
    model.graph.input.append(helper.make_tensor_value_info("w", 1, [3]))
    prepare(model, "m.onnx")


@pytest.mark.parametrize(
    ("ir", "opset", "message"),
    [(99, 18, "IR version from 3"), (2, 18, "IR version from 3"), (8, 999, "opset from 1"), (8, 0, "opset from 1")],
)
def test_versions_that_nobody_knows(ir, opset, message):
    with pytest.raises(UsageError, match=message):
        prepare(_model("y = Relu(x)", opset, ir), "m.onnx")


@pytest.mark.parametrize("ir", [3, 4, 8, 10])
def test_versions_that_are_known(ir):
    prepare(_model("y = Relu(x)", ir=ir), "m.onnx")


def test_names_that_are_no_text():
    damaged = _model("y = Relu(x)").SerializeToString().replace(b"\x0a\x01x", b"\x0a\x01\xff")
    with pytest.raises(UsageError, match="names in UTF-8"):
        prepare(ModelProto.FromString(damaged), "m.onnx")


def test_no_outputs():
    model = _model("y = Relu(x)")
    del model.graph.output[:]
    with pytest.raises(UsageError, match="without any"):
        prepare(model, "m.onnx")


def test_an_unknown_operator_is_for_those_who_run_it():
    model = _model("y = Relu(x)")
    model.graph.node[0].domain = "my.own"
    prepare(model, "m.onnx")


def test_nodes_out_of_order_are_sorted_and_stay_the_same():
    model = _model("y = Abs(b) b = Relu(x)")
    prepare(model, "m.onnx")
    assert [n.op_type for n in model.graph.node] == ["Relu", "Abs"]


def _branch(body, name="z"):
    inner = _model(f"y = {body}").graph
    branch = helper.make_graph([*inner.node], "branch", [], [helper.make_tensor_value_info(name, 1, [3])])
    branch.node[-1].output[0] = name
    return branch


def test_a_graph_inside_takes_what_is_outside():
    model = _model("y = Identity(v) v = Relu(x)")
    model.graph.node[0].CopyFrom(
        helper.make_node("If", ["c"], ["y"], then_branch=_branch("Abs(v)"), else_branch=_branch("Neg(v)"))
    )
    model.graph.input.append(helper.make_tensor_value_info("c", 9, []))
    prepare(model, "m.onnx")
    assert [n.op_type for n in model.graph.node] == ["Relu", "If"]  # what a branch takes comes first


def test_a_cycle_through_a_graph_inside():
    model = _model("y = Relu(v)")
    branch = _branch("Abs(y)")
    model.graph.node.append(helper.make_node("If", ["c"], ["v"], then_branch=branch, else_branch=branch))
    model.graph.input.append(helper.make_tensor_value_info("c", 9, []))
    with pytest.raises(UsageError, match="cycle, got one of 2 nodes"):
        prepare(model, "m.onnx")


def test_functions_that_call_each_other():
    text = (
        '<ir_version: 8, opset_import: ["": 18, "f": 1]> g (float[3] x) => (float[3] y) { y = f.one(x) }'
        '<domain: "f", opset_import: ["": 18, "f": 1]> one (a) => (b) { b = f.two(a) }'
        '<domain: "f", opset_import: ["": 18, "f": 1]> two (a) => (b) { b = f.one(a) }'
    )
    with pytest.raises(UsageError, match="ring of calls: "):
        prepare(parser.parse_model(text), "m.onnx")


@pytest.mark.parametrize(
    ("dims", "message"),
    [([5], r"expected 20 bytes for tensor 'w' of float\[5\], got 12"), ([-3], "0 or more"), ([10**6] * 3, "at most")],
)
def test_tensors_that_contradict_themselves(dims, message):
    model = _model("y = Add(x, w)")
    weight = numpy_helper.from_array(np.ones(3, np.float32), "w")
    del weight.dims[:]
    weight.dims.extend(dims)
    model.graph.initializer.append(weight)
    with pytest.raises(UsageError, match=message):
        prepare(model, "m.onnx")


def test_an_impossible_input():
    model = _model("y = Relu(x)")
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 10**12
    with pytest.raises(UsageError, match="1000000000000 by its sizes"):
        prepare(model, "m.onnx")


def test_a_hundred_thousand_nodes_take_seconds():
    names = ["x", *(f"v{i}" for i in range(1, 100_000)), "y"]
    nodes = [helper.make_node("Relu", [a], [b]) for a, b in itertools.pairwise(names)]
    model = _model("y = Relu(x)")
    del model.graph.node[:]
    model.graph.node.extend(reversed(nodes))
    started = time.process_time()
    prepare(model, "m.onnx")
    assert time.process_time() - started < 20
    assert isinstance(model, ModelProto)
    assert model.graph.node[0].input[0] == "x"
