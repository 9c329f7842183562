"""Operators of before operator set 7: what broadcasts, and along which axes, is said by attributes."""

from __future__ import annotations

import numpy as np
import pytest

from tests.unit.adapters.float64.onnx_models import one_node
from trueport.adapters.float64.onnx import Float64Evaluator
from trueport.core.errors import ToolError

A = np.arange(24.0).reshape(2, 3, 4) + 1


def run(op_type, *inputs, **attributes):
    feeds = {f"x{i}": value for i, value in enumerate(inputs)}
    return Float64Evaluator(one_node(op_type, feeds, opset=6, **attributes)).run(feeds)[0]


def test_the_second_operand_is_aligned_with_the_last_axes_or_with_those_named():
    row, column = np.arange(4.0), np.arange(3.0)
    assert np.array_equal(run("Sub", A, row, broadcast=1), A - row)
    assert np.array_equal(run("Sub", A, column, broadcast=1, axis=1), A - column[:, None])
    assert np.array_equal(run("Mul", A, A[0, :, :1], broadcast=1, axis=1), A * A[0, :, :1])
    assert np.array_equal(run("Div", A, np.asarray([2.0]), broadcast=1), A / 2)


def test_nothing_broadcasts_unless_it_is_told_to():
    assert np.array_equal(run("Add", A, A), 2 * A)
    with pytest.raises(ToolError, match="without 'broadcast'"):
        run("Add", A, np.arange(4.0))


def test_the_first_operand_never_broadcasts():
    with pytest.raises(ToolError, match="fits into"):
        run("Add", A[:1], A, broadcast=1)


def test_a_slope_for_each_channel():
    x = np.asarray([[[-1.0, 2.0], [-3.0, 4.0]]])
    assert run("PRelu", x, np.asarray([0.5, 0.25])).tolist() == [[[-0.5, 2.0], [-0.75, 4.0]]]
    assert run("PRelu", x, np.asarray([0.5])).tolist() == [[[-0.5, 2.0], [-1.5, 4.0]]]


def test_what_was_not_yet_said_has_no_kernel():
    x, c = np.ones((1, 1, 4, 4)), np.ones(1)
    statistics = dict(zip("sbmv", [c] * 4, strict=True))
    missing = [
        one_node("AveragePool", {"x": x}, opset=6, kernel_shape=[2, 2], pads=[1, 1, 0, 0]),
        one_node("BatchNormalization", {"x": x, **statistics}, opset=6),
        one_node("Dropout", {"x": x}, opset=6),
    ]
    assert all(Float64Evaluator(model).missing for model in missing)
    known = one_node("BatchNormalization", {"x": x, **statistics}, opset=6, is_test=1)
    assert not Float64Evaluator(known).missing
