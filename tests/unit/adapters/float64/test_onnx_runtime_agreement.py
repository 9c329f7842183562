"""Random small models against ONNX Runtime: what it computes in float32 must be near what the evaluator computes."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from trueport.adapters.float64.onnx import Float64Evaluator

UNARY = ["Relu", "Sigmoid", "Tanh", "Neg", "Abs", "Softplus", "Softsign", "Elu", "Gelu", "Sin", "Erf", "HardSwish"]
BINARY = ["Add", "Sub", "Mul", "Max", "Min"]
SHAPE = (3, 4, 5)


def _node(rng: np.random.Generator, values: list[str], output: str, weights: list[onnx.TensorProto]) -> onnx.NodeProto:
    pick = str(rng.choice(values))
    kind = rng.integers(6)
    if kind == 0:
        return helper.make_node(str(rng.choice(UNARY)), [pick], [output])
    if kind == 1:
        return helper.make_node(str(rng.choice(BINARY)), [pick, str(rng.choice(values))], [output])
    if kind == 2:
        shape = SHAPE[-int(rng.integers(1, 4)) :]
        weights.append(numpy_helper.from_array(rng.normal(size=shape).astype(np.float32), f"w{output}"))
        return helper.make_node(str(rng.choice(BINARY)), [pick, f"w{output}"], [output])
    if kind == 3:
        weights.append(numpy_helper.from_array(rng.normal(size=(5, 5)).astype(np.float32) / 2, f"w{output}"))
        return helper.make_node("MatMul", [pick, f"w{output}"], [output])
    if kind == 4:
        return helper.make_node("Softmax", [pick], [output], axis=int(rng.integers(-3, 3)))
    weights.append(numpy_helper.from_array(np.ones(5, dtype=np.float32), f"w{output}"))
    return helper.make_node("LayerNormalization", [pick, f"w{output}"], [output])


def _model(rng: np.random.Generator) -> onnx.ModelProto:
    weights: list[onnx.TensorProto] = []
    values, nodes = ["x"], []
    for index in range(int(rng.integers(3, 12))):
        nodes.append(_node(rng, values, f"v{index}", weights))
        values.append(f"v{index}")
    infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, list(SHAPE)) for name in values]
    graph = helper.make_graph(nodes, "g", infos[:1], infos[1:], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)


@pytest.mark.parametrize("seed", range(30))
def test_random_models_agree(seed: int) -> None:
    rng = np.random.default_rng(seed)
    model = _model(rng)
    x = rng.normal(size=SHAPE).astype(np.float32)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    evaluator = Float64Evaluator(model)
    for name, mine, theirs in zip(
        evaluator.output_names, evaluator.run({"x": x}), session.run(None, {"x": x}), strict=True
    ):
        scale = max(1.0, float(np.max(np.abs(mine))))
        np.testing.assert_allclose(theirs, mine, rtol=2e-4, atol=1e-4 * scale, err_msg=name)
