"""Fused operators against ONNX Runtime on values that it computes exactly, or nearly."""

from __future__ import annotations

import numpy as np
import onnxruntime as ort
import pytest

from tests.unit.adapters.float64.onnx_models import one_node
from trueport.adapters.float64.onnx import Float64Evaluator
from trueport.core.errors import ToolError

MICROSOFT = "com.microsoft"


def draw(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def agree(op_type, *inputs, **attributes):
    feeds = {f"x{i}" if value is not None else "": value for i, value in enumerate(inputs)}
    feeds = {name: value for name, value in feeds.items() if name}
    model = one_node(op_type, feeds, domain=MICROSOFT, **attributes)
    del model.graph.node[0].input[:]
    model.graph.node[0].input.extend(f"x{i}" if value is not None else "" for i, value in enumerate(inputs))
    for info in model.graph.output:
        info.type.tensor_type.elem_type = 1
    settings = ort.SessionOptions()
    settings.log_severity_level = 4
    (wanted,) = ort.InferenceSession(model.SerializeToString(), settings, providers=["CPUExecutionProvider"]).run(
        None, feeds
    )
    evaluator = Float64Evaluator(model)
    assert not evaluator.missing
    (got,) = evaluator.run(feeds)
    assert got.shape == wanted.shape
    np.testing.assert_allclose(got, wanted, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize(
    ("activation", "parameters"),
    [("Relu", None), ("Sigmoid", None), ("Tanh", None), ("LeakyRelu", [0.2]), ("Clip", [-0.5, 0.5]),
     ("HardSigmoid", [0.3, 0.4])],
)  # fmt: skip
def test_a_convolution_with_its_activation(activation, parameters):
    given = {} if parameters is None else {"activation_params": parameters}
    agree("FusedConv", draw(1, 2, 6, 6), draw(3, 2, 3, 3, seed=1), draw(3, seed=2), activation=activation, **given)


def test_a_convolution_with_a_sum_and_its_activation():
    agree("FusedConv", draw(1, 2, 6, 6), draw(3, 2, 3, 3, seed=1), draw(3, seed=2), draw(1, 3, 4, 4, seed=3),
          activation="Relu")  # fmt: skip


def test_an_activation_that_is_not_known_has_no_kernel():
    feeds = {"x0": draw(1, 1, 3, 3), "x1": draw(1, 1, 2, 2)}
    for attributes in ({"activation": "Mystery"}, {"activation": "Clip", "activation_params": [1.0]}):
        assert Float64Evaluator(one_node("FusedConv", feeds, domain=MICROSOFT, **attributes)).missing


@pytest.mark.parametrize("activation", ["Relu", "Tanh", "LeakyRelu"])
def test_a_product_with_its_activation(activation):
    given = {"activation_alpha": 0.25} if activation == "LeakyRelu" else {}
    agree("FusedGemm", draw(3, 4), draw(5, 4, seed=1), draw(5, seed=2), transB=1, alpha=0.5, beta=2.0,
          activation=activation, **given)  # fmt: skip


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("second", [0, 1])
def test_a_product_of_transposed_factors(first, second):
    a, b = draw(2, 4, 3) if first else draw(2, 3, 4), draw(2, 5, 4, seed=1) if second else draw(2, 4, 5, seed=1)
    agree("FusedMatMul", a, b, transA=first, transB=second, alpha=0.5)


@pytest.mark.parametrize("transposed", [0, 1])
def test_a_product_whose_batch_is_transposed(transposed):
    a = draw(3, 2, 4) if not transposed else draw(4, 2, 3)
    agree("FusedMatMul", a, draw(2, 4, 5, seed=1), transBatchA=1, transA=transposed)


@pytest.mark.parametrize("causal", [0, 1])
@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("padded", [False, True])
def test_attention_of_many_heads(causal, biased, padded):
    q, k, v = (draw(2, 4, 8, seed=i) for i in range(3))
    bias = draw(24, seed=3) if biased else None
    padding = np.asarray([[1, 1, 1, 1], [1, 1, 0, 0]], np.int32) if padded else None
    agree("MultiHeadAttention", q, k, v, bias, padding, draw(1, 2, 4, 4, seed=5), num_heads=2, unidirectional=causal)


def test_packed_factors_are_refused():
    q = draw(1, 4, 2, 3, 4)
    assert Float64Evaluator(one_node("MultiHeadAttention", {"q": q}, domain=MICROSOFT, num_heads=2)).missing
    feeds = {"q": draw(1, 4, 8), "k": draw(1, 2, 4, 4), "v": draw(1, 2, 4, 4)}
    with pytest.raises(ToolError, match="rank 3"):
        Float64Evaluator(one_node("MultiHeadAttention", feeds, domain=MICROSOFT, num_heads=2)).run(feeds)
