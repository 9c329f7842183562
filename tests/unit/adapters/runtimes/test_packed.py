"""Types narrower than a byte survive the way into a runtime and back."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from trueport.adapters.runtimes import runtime
from trueport.adapters.runtimes._packed import from_storage, nbytes, to_storage

NARROW = (TensorProto.INT4, TensorProto.UINT4, TensorProto.FLOAT4E2M1, TensorProto.INT2, TensorProto.UINT2)


def every_number(element_type, count):
    dtype = helper.tensor_dtype_to_np_dtype(element_type)
    low, high = (0, 4) if dtype.name == "uint2" else (-2, 2) if dtype.name == "int2" else (0, 7)
    return np.resize(np.arange(low, high), count).astype(dtype)


@pytest.mark.parametrize("element_type", NARROW)
@pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 5, 9])
def test_numbers_come_back_as_they_were(element_type, count):
    value = every_number(element_type, count)
    raw = to_storage(value)
    assert raw.dtype == np.uint8
    assert raw.nbytes == nbytes(value.dtype, count)
    back = from_storage(raw, element_type, (count,))
    assert back.dtype == value.dtype
    assert back.astype(np.float64).tolist() == value.astype(np.float64).tolist()


@pytest.mark.parametrize("element_type", NARROW)
@pytest.mark.parametrize("count", [1, 2, 5, 8])
def test_the_bytes_are_those_of_onnx(element_type, count):
    value = every_number(element_type, count)
    assert to_storage(value).tobytes() == onnx.numpy_helper.from_array(value).raw_data


@pytest.mark.parametrize("element_type", [TensorProto.INT2, TensorProto.UINT2, TensorProto.INT4, TensorProto.UINT4])
def test_onnxruntime_takes_and_gives_them(element_type, tmp_path):
    nodes = [helper.make_node("Cast", ["x"], ["w"], to=1), helper.make_node("Cast", ["w"], ["y"], to=element_type)]
    infos = [
        helper.make_tensor_value_info("x", element_type, [5]),
        helper.make_tensor_value_info("y", element_type, [5]),
    ]
    graph = helper.make_graph(nodes, "g", infos[:1], infos[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)], ir_version=12)
    onnx.save(model, tmp_path / "model.onnx")
    value = every_number(element_type, 5)
    (found,) = runtime("onnxruntime").load(tmp_path / "model.onnx").run({"x": value})
    assert found.dtype == value.dtype
    assert found.astype(np.int8).tolist() == value.astype(np.int8).tolist()
