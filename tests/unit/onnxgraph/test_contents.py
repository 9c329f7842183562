"""Every type that ONNX writes is accepted as it is written, and not with a byte less."""

from __future__ import annotations

import pytest
from onnx import TensorProto, helper, numpy_helper

from trueport.core.errors import UsageError
from trueport.onnxgraph.contents import check_sparse, check_tensor

TYPES = [name for name in TensorProto.DataType.keys() if name != "UNDEFINED"]  # noqa: SIM118 - an enum wrapper


@pytest.mark.parametrize("name", TYPES)
def test_types(name):
    values = ["a"] * 7 if name == "STRING" else [1] * 7
    tensor = helper.make_tensor("t", TensorProto.DataType.Value(name), [7], values)
    check_tensor(tensor)
    tensor.dims[0] = 70
    with pytest.raises(UsageError, match="expected"):
        check_tensor(tensor)
    if name == "STRING":
        return
    tensor.dims[0] = 7
    raw = numpy_helper.from_array(numpy_helper.to_array(tensor), "t")
    check_tensor(raw)
    raw.raw_data = raw.raw_data[:-1]
    with pytest.raises(UsageError, match="bytes for tensor 't'"):
        check_tensor(raw)


def test_an_unknown_type():
    with pytest.raises(UsageError, match="got number 99"):
        check_tensor(TensorProto(name="t", data_type=99, dims=[1]))


def test_sparse_indices():
    values = helper.make_tensor("v", TensorProto.FLOAT, [2], [1, 2])
    check_sparse(helper.make_sparse_tensor(values, helper.make_tensor("i", TensorProto.INT64, [2], [0, 1]), [4]))
    wrong = helper.make_tensor("i", TensorProto.INT64, [3], [0, 1, 2])
    with pytest.raises(UsageError, match=r"shape \[2\] or \[2, 1\], got \[3\]"):
        check_sparse(helper.make_sparse_tensor(values, wrong, [4]))
