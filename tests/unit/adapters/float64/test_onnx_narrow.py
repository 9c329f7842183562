"""Rounding to narrow floating-point types against `ml_dtypes`, and what the standard says outside of their range."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper, parser

from tests.unit.adapters.float64.onnx_models import one_node
from trueport.adapters.float64.onnx import Float64Evaluator
from trueport.adapters.float64.onnx.dialect import ONNX
from trueport.adapters.float64.onnx.narrow import EXPONENT_ONLY, NARROW, rounded
from trueport.adapters.float64.replay.source import Replay
from trueport.oracle.compare import compare_arithmetic
from trueport.oracle.noise import ALARM


def every_number(dtype):
    """All finite numbers of a type, and what lies in the middle between neighbours."""
    own = np.dtype(getattr(ml_dtypes, dtype))
    numbers = (
        np.arange(256, dtype=np.uint8).view(own).astype(np.float64) if "8" in dtype[:6] else np.arange(-60, 61) / 8
    )
    numbers = np.unique(numbers[np.isfinite(numbers)])
    return np.unique(np.concatenate([numbers, (numbers[1:] + numbers[:-1]) / 2, numbers * 1.01, numbers * 0.99]))


@pytest.mark.parametrize("dtype", NARROW)
def test_what_is_in_range_is_rounded_half_to_even(dtype):
    x = every_number(dtype)
    x = x[np.abs(x) <= NARROW[dtype].largest]
    wanted = x.astype(getattr(ml_dtypes, dtype)).astype(np.float64)
    got = rounded(x, dtype)
    assert np.array_equal(got, wanted)
    if NARROW[dtype].signed_zero:
        assert np.array_equal(np.signbit(got), np.signbit(wanted))


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz"])
def test_what_is_out_of_range_is_held_or_lost(dtype):
    x = np.asarray([np.inf, -np.inf, 1e6, -1e6, np.nan])
    largest = NARROW[dtype].largest
    assert rounded(x, dtype)[:4].tolist() == [largest, -largest, largest, -largest]
    lost = rounded(x, dtype, saturate=False)
    wanted = x.astype(getattr(ml_dtypes, dtype)).astype(np.float64)
    assert np.array_equal(lost, wanted, equal_nan=True)
    assert np.isnan(rounded(x, dtype)[4])


@pytest.mark.parametrize("mode", ["up", "down", "nearest"])
@pytest.mark.parametrize("saturate", [True, False])
def test_powers_of_two_are_those_of_onnx(mode, saturate):
    x = np.concatenate([[1.0, 1.25, 1.5, 1.75, 2.0, 3.0], np.geomspace(1e-30, 1e30, 101)]).astype(np.float32)
    wanted = numpy_helper.to_float8e8m0(x, saturate, mode).view(ml_dtypes.float8_e8m0fnu).astype(np.float64)
    assert np.array_equal(rounded(x.astype(np.float64), EXPONENT_ONLY, saturate=saturate, mode=mode), wanted)


def test_powers_of_two_outside_of_their_range():
    x = np.asarray([0.0, np.inf, 1e300, 1e-300, np.nan])
    assert rounded(x, EXPONENT_ONLY)[:4].tolist() == [2.0**-127, 2.0**127, 2.0**127, 2.0**-127]
    assert np.isnan(rounded(x, EXPONENT_ONLY)[4])
    assert np.isnan(rounded(x, EXPONENT_ONLY, saturate=False, mode="nearest")).all()


def cast_reference(x, to):
    node = helper.make_node("Cast", ["s"], ["y"], to=to)
    scale = helper.make_node("Mul", ["x", "t"], ["s"])
    graph = helper.make_graph(
        [scale, node], "g", [helper.make_tensor_value_info("x", 1, [len(x)])],
        [helper.make_tensor_value_info("y", to, [len(x)])], [numpy_helper.from_array(np.float32(0.1), "t")],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)], ir_version=12)
    return Replay(Float64Evaluator(model), ONNX, 0).reference({"x": np.asarray(x, np.float32)}, 0, ALARM).outputs[0]


def test_a_number_in_the_middle_may_be_rounded_either_way():
    # 10.5 * 0.1 is 1.05 and 10.625 * 0.1 is 1.0625, half way between 1 and 1.125.
    output = cast_reference([10.5, 10.625], TensorProto.FLOAT8E4M3FN)
    assert output.dtype == "float8_e4m3fn"
    assert output.unstable.tolist() == [False, True]
    assert {float(other[1]) for other in output.others} == {1.0, 1.125}
    assert (output.arithmetic_floor == 0).all()


def test_a_nan_is_equal_to_itself_and_to_nothing_else():
    output = cast_reference([np.nan, 10.0, 20.0], TensorProto.FLOAT8E5M2)
    same = np.asarray([np.nan, 1.0, 2.0]).astype(ml_dtypes.float8_e5m2)
    assert compare_arithmetic(output, same).kind is None
    for wrong in ([np.nan, 1.0, np.nan], [1.0, 1.0, 2.0], [np.nan, 1.0, 2.5]):
        assert compare_arithmetic(output, np.asarray(wrong).astype(ml_dtypes.float8_e5m2)).kind is not None


def test_bits_are_those_of_the_declared_type():
    x = np.asarray([1.0, -2.5, np.inf, 0.1], np.float32)
    (bits,) = Float64Evaluator(one_node("BitCast", {"x": x}, opset=26, to=TensorProto.INT32)).run({"x": x})
    assert np.array_equal(bits, x.view(np.int32))
    (back,) = Float64Evaluator(one_node("BitCast", {"x": bits}, opset=26, to=TensorProto.FLOAT)).run({"x": bits})
    assert np.array_equal(back, x.astype(np.float64))


def test_bits_of_another_width_have_no_kernel():
    x = np.ones(2, np.float32)
    assert Float64Evaluator(one_node("BitCast", {"x": x}, opset=26, to=TensorProto.INT64)).missing == (
        "ai.onnx::BitCast",
    )


@pytest.mark.parametrize(
    ("dtype", "low", "high"), [("INT4", -8, 7), ("UINT4", 0, 15), ("INT2", -2, 1), ("UINT2", 0, 3)]
)
def test_quantization_to_less_than_a_byte_saturates(dtype, low, high):
    model = parser.parse_model(
        '<ir_version: 12, opset_import: ["": 25]> g (float[5] x) => (float[5] y) <float s = {0.5}> '
        f"{{ q = QuantizeLinear<output_dtype = {getattr(onnx.TensorProto, dtype)}>(x, s) y = DequantizeLinear(q, s) }}"
    )
    x = np.asarray([-100.0, 0.26, 0.5, 0.74, 100.0], np.float32)
    (y,) = Float64Evaluator(model).run({"x": x})
    assert y.tolist() == [low / 2, 0.5, 0.5, 0.5, high / 2]


@pytest.mark.parametrize("code", [TensorProto.INT4, TensorProto.UINT4, TensorProto.INT2, TensorProto.UINT2])
def test_a_cast_to_less_than_a_byte_rounds_half_to_even(code):
    x = np.asarray([0.4, 0.5, 0.6, 1.4], np.float32)
    (y,) = Float64Evaluator(one_node("Cast", {"x": x}, opset=25, to=code)).run({"x": x})
    assert y.astype(np.int8).tolist() == [0, 0, 1, 1]
