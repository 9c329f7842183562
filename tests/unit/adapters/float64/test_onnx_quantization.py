"""Quantized operators against ONNX Runtime on exact cases, and what is not defined is refused."""

from __future__ import annotations

import numpy as np
import onnxruntime as ort
import pytest
from onnx import parser

from trueport.adapters.float64.onnx import Float64Evaluator
from trueport.core.errors import ToolError

RNG = np.random.default_rng(0)


def model(signature, body, initializers=""):
    return parser.parse_model(f'<ir_version: 9, opset_import: ["": 20]> g {signature} {initializers} {{ {body} }}')


def agree(made, **feeds):
    wanted = ort.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, feeds)
    got = Float64Evaluator(made).run(feeds)
    for a, b in zip(wanted, got, strict=True):
        np.testing.assert_allclose(b.astype(np.float64), a.astype(np.float64), rtol=1e-6, atol=0)


def test_quantize_and_dequantize_the_whole_tensor():
    made = model(
        "(float[5] x) => (uint8[5] q, float[5] y)",
        "q = QuantizeLinear(x, s, z) y = DequantizeLinear(q, s, z)",
        "<float s = {0.25}, uint8 z = {128}>",
    )
    agree(made, x=np.asarray([-1.0, 0.125, 0.375, 31.0, 1e6], np.float32))


def test_one_scale_for_each_channel():
    made = model(
        "(float[2,3] x) => (int8[2,3] q, float[2,3] y)",
        "q = QuantizeLinear<axis = 0>(x, s, z) y = DequantizeLinear<axis = 0>(q, s, z)",
        "<float[2] s = {0.5, 4}, int8[2] z = {0, 3}>",
    )
    agree(made, x=RNG.integers(-40, 40, (2, 3)).astype(np.float32) / 8)


def test_a_quantized_product():
    made = model(
        "(uint8[3,4] a, uint8[4,2] b) => (uint8[3,2] y)",
        "y = QLinearMatMul(a, s, z, b, s, z, t, z)",
        "<float s = {0.5}, uint8 z = {120}, float t = {16}>",
    )
    agree(made, a=RNG.integers(0, 255, (3, 4), np.uint8), b=RNG.integers(0, 255, (4, 2), np.uint8))


def test_a_quantized_convolution():
    made = model(
        "(uint8[1,2,5,5] x, uint8[3,2,3,3] w) => (uint8[1,3,5,5] y)",
        "y = QLinearConv<pads = [1, 1, 1, 1]>(x, s, z, w, s, z, t, z)",
        "<float s = {0.5}, uint8 z = {120}, float t = {64}>",
    )
    agree(made, x=RNG.integers(0, 255, (1, 2, 5, 5), np.uint8), w=RNG.integers(0, 255, (3, 2, 3, 3), np.uint8))


def test_a_range_found_by_the_operator_itself():
    made = model("(float[6] x) => (uint8[6] q, float s, uint8 z)", "q, s, z = DynamicQuantizeLinear(x)")
    agree(made, x=np.asarray([0.0, 2.0, -3.0, -2.4, 1.34, 0.5], np.float32))


@pytest.mark.parametrize("operator", ["Div", "Mod", "Mod<fmod = 1>"])
def test_an_integer_by_zero_is_refused(operator):
    made = model("(int64[2] a, int64[2] b) => (int64[2] y)", f"y = {operator}(a, b)")
    with pytest.raises(ToolError, match="divided by zero"):
        Float64Evaluator(made).run({"a": np.asarray([1, 2]), "b": np.asarray([0, 1])})
