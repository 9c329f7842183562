"""Small ONNX models for converters that take ONNX, with weights of a fixed seed."""

from __future__ import annotations

import hashlib

import numpy as np
import onnx
from onnx import numpy_helper, parser

from trueport.core.subject import Example, Subject

_HEAD = '<ir_version: 8, opset_import: ["": 18]> '
_Shapes = dict[str, tuple[int, ...]]
_TEXTS: dict[str, tuple[str, _Shapes, _Shapes]] = {
    "perceptron": (
        "perceptron (float[2,4] x, float[4,8] w, float[8] b, float[8,3] v) => (float[2,3] y) "
        "{ h = MatMul (x, w) s = Add (h, b) r = Relu (s) y = MatMul (r, v) }",
        {"w": (4, 8), "b": (8,), "v": (8, 3)},
        {"x": (2, 4)},
    ),
    "convolution": (
        "convolution (float[1,2,6,6] x, float[3,2,3,3] w, float[3,1,1] b) => (float[1,3,4,4] y) "
        "{ c = Conv <kernel_shape = [3, 3]> (x, w) i = Identity (c) s = Add (i, b) y = Tanh (s) }",
        {"w": (3, 2, 3, 3), "b": (3, 1, 1)},
        {"x": (1, 2, 6, 6)},
    ),
}


def onnx_subjects() -> list[Subject]:
    """Returns a perceptron and a convolution, with an example each."""
    subjects = []
    for name, (text, weights, inputs) in _TEXTS.items():
        rng = np.random.default_rng(7)
        model = onnx.ModelProto()
        model.CopyFrom(parser.parse_model(_HEAD + text))
        for weight, shape in weights.items():
            values = (rng.standard_normal(shape) / 2).astype(np.float32)
            model.graph.initializer.append(numpy_helper.from_array(values, weight))
            model.graph.input.remove(next(v for v in model.graph.input if v.name == weight))
        example = Example(kwargs={k: rng.standard_normal(s).astype(np.float32) for k, s in inputs.items()})
        digest = hashlib.sha256(model.SerializeToString(deterministic=True)).hexdigest()
        subjects.append(Subject(name, "onnx", "<object>", digest, model, (example,)))
    return subjects
