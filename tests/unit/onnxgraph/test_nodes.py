"""Operators that ONNX does not have are told from those of other domains and of the model itself."""

from __future__ import annotations

from onnx import TensorProto, helper

from trueport.onnxgraph.nodes import undefined_operators


def _model(*nodes, functions=()):
    value = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in ("x", "y")]
    graph = helper.make_graph(list(nodes), "g", value[:1], value[1:])
    return helper.make_model(graph, functions=list(functions))


def test_an_operator_of_another_framework_is_undefined():
    left_over = _model(helper.make_node("TruncateMod", ["x", "x"], ["t"]), helper.make_node("Relu", ["t"], ["y"]))
    assert undefined_operators(left_over) == ("TruncateMod",)


def test_an_operator_of_another_domain_is_somebody_elses():
    assert undefined_operators(_model(helper.make_node("FusedGemm", ["x"], ["y"], domain="com.microsoft"))) == ()


def test_a_function_of_the_model_is_defined():
    body = helper.make_node("Relu", ["a"], ["b"])
    function = helper.make_function("", "Own", ["a"], ["b"], [body], [helper.make_opsetid("", 18)])
    assert undefined_operators(_model(helper.make_node("Own", ["x"], ["y"]), functions=[function])) == ()
