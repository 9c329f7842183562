"""Models for the tests of the ONNX evaluator, in ONNX text."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import helper, parser

from trueport.adapters.float64.onnx import Float64Evaluator


def parse(body: str, *, opset: int = 18, functions: str = "") -> onnx.ModelProto:
    """Returns the model of a graph in ONNX text."""
    imports = f'"": {opset}, "local": 1, "com.microsoft": 1'
    return parser.parse_model(f"<ir_version: 8, opset_import: [{imports}]> {body} {functions}")


def one_node(
    op_type: str,
    inputs: dict[str, np.ndarray],
    *,
    outputs: int = 1,
    opset: int = 20,
    domain: str = "",
    **attributes: Any,
) -> onnx.ModelProto:
    """Returns a model of one node whose inputs have the types of the arrays."""
    names = [f"y{i}" for i in range(outputs)]
    node = helper.make_node(op_type, list(inputs), names, domain=domain, **attributes)
    infos = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), None)
        for name, value in inputs.items()
        if name
    ]
    results = [onnx.ValueInfoProto(name=name) for name in names]
    graph = helper.make_graph([node], "g", infos, results)
    imports = [helper.make_opsetid("", opset)] + ([helper.make_opsetid(domain, 1)] if domain else [])
    return helper.make_model(graph, opset_imports=imports, ir_version=10)


def run_one(op_type: str, *inputs: np.ndarray, **options: Any) -> list[Any]:
    """Returns the outputs of one node."""
    named = {f"x{i}": np.asarray(value) for i, value in enumerate(inputs)}
    return Float64Evaluator(one_node(op_type, named, **options)).run(named)
