"""What differs between two models."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import numpy_helper, parser

from trueport.onnxgraph.changes import changes, node_text

TEXT = """<ir_version: 10, opset_import: ["": 18]>
g (float[2,3] x) => (float[3,2] y) <float[2,3] w = {1, 2, 3, 4, 5, 6}>
{ a = Add(x, w)
  t = Transpose <perm = [1, 0]> (a)
  y = Relu(t) }"""


def model() -> onnx.ModelProto:
    """Returns x -> Add -> Transpose -> Relu."""
    return parser.parse_model(TEXT)


def test_a_copy_has_no_changes() -> None:
    assert changes(model(), model()).nothing


def test_replaced_nodes_are_told_in_order_with_what_replaced_them() -> None:
    after = parser.parse_model(TEXT.replace("t = Transpose <perm = [1, 0]> (a)\n  y = Relu(t)", "y = Fused(a)"))
    found = changes(model(), after)
    assert found.sequence == ("Transpose", "Relu")
    assert [node_text(n) for n in found.removed] == ["Transpose(perm=[1, 0]) a -> t", "Relu t -> y"]
    assert [node_text(n) for n in found.added] == ["Fused a -> y"]


def test_a_node_that_takes_another_name_is_not_changed() -> None:
    after = parser.parse_model(TEXT.replace("a = Add(x, w)\n", "").replace("(a)", "(x)"))
    found = changes(model(), after)
    assert found.sequence == ("Add",)
    assert not found.added


def test_an_attribute_is_a_change_of_its_node() -> None:
    after = parser.parse_model(TEXT.replace("[1, 0]", "[0, 1]"))
    assert [n.op_type for n in changes(model(), after).added] == ["Transpose"]


def test_an_initializer_that_differs_is_named_with_its_difference() -> None:
    after = model()
    values = numpy_helper.to_array(after.graph.initializer[0]).copy()
    values[1, 2] += 0.5
    after.graph.initializer[0].CopyFrom(numpy_helper.from_array(values, "w"))
    assert changes(model(), after).tensors == ("initializer 'w': 1 of 6 elements differ, by up to 0.5",)


def test_the_same_numbers_in_another_encoding_are_no_change() -> None:
    after = model()
    after.graph.initializer[0].CopyFrom(numpy_helper.from_array(numpy_helper.to_array(after.graph.initializer[0]), "w"))
    assert changes(model(), after).nothing


def test_types_shapes_and_names_of_the_interface_are_told() -> None:
    after = model()
    after.graph.output[0].type.tensor_type.elem_type = onnx.TensorProto.DOUBLE
    after.opset_import[0].version = 20
    found = changes(model(), after).interface
    assert found == ("operator set ai.onnx: 18 became 20", "output 'y': float[3, 2] became double[3, 2]")


def test_another_shape_of_an_initializer_is_told() -> None:
    after = model()
    after.graph.initializer[0].CopyFrom(numpy_helper.from_array(np.ones((3, 2), np.float32), "w"))
    assert changes(model(), after).tensors == ("initializer 'w': float[2, 3] became float[3, 2]",)
