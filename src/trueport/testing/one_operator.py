"""Small ONNX models whose results are known from NumPy, one for each thing that a runtime has to get right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

_X = np.array([[-1.5, 0.25, 2.0], [3.0, -0.125, 0.5]], np.float32)
_POSITIVE = np.abs(_X)
_I = np.array([[3, -4, 5], [0, 7, -2]], np.int64)
_EYE = np.array([[1, 2], [3, 4], [5, 6]], np.float32)
_IMAGE = np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4)


@dataclass(frozen=True)
class OneOperator:
    """A model in ONNX's text form.

    Attributes:
        name: of the model.
        body: inputs, outputs and nodes, as ONNX's parser reads them.
        feeds: the inputs.
        outputs: the right results, in order and in their own types.
        needed: whether every runtime must have kernels for it; others may say that they lack them.
        opset: of the default domain.
    """

    name: str
    body: str
    feeds: Mapping[str, Any]
    outputs: Sequence[Array]
    needed: bool = True
    opset: int = 18

    @property
    def text(self) -> str:
        """The whole model."""
        return f'<ir_version: 8, opset_import: ["": {self.opset}]> {self.body}'


def _f(name: str, body: str, feeds: Mapping[str, Any], *outputs: Array, needed: bool = True) -> OneOperator:
    return OneOperator(name, body, feeds, outputs, needed)


MODELS: tuple[OneOperator, ...] = (
    _f("add", "g (float[2,3] x) => (float[2,3] y) { y = Add (x, x) }", {"x": _X}, _X + _X),
    _f(
        "broadcast",
        "g (float[2,3] x, float[3] z) => (float[2,3] y) { y = Mul (x, z) }",
        {"x": _X, "z": _X[0]},
        _X * _X[0],
    ),
    _f(
        "matmul",
        "g (float[2,3] x, float[3,2] z) => (float[2,2] y) { y = MatMul (x, z) }",
        {"x": _X, "z": _EYE},
        _X @ _EYE,
    ),
    _f("relu", "g (float[2,3] x) => (float[2,3] y) { y = Relu (x) }", {"x": _X}, np.maximum(_X, 0)),
    _f("sqrt", "g (float[2,3] x) => (float[2,3] y) { y = Sqrt (x) }", {"x": _POSITIVE}, np.sqrt(_POSITIVE)),
    _f("tanh", "g (float[2,3] x) => (float[2,3] y) { y = Tanh (x) }", {"x": _X}, np.tanh(_X)),
    _f(
        "max-pool",
        "g (float[1,1,4,4] x) => (float[1,1,2,2] y) { y = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (x) }",
        {"x": _IMAGE},
        np.array([[[[5, 7], [13, 15]]]], np.float32),
    ),
    _f(
        "reduce-to-scalar",
        "g (float[2,3] x) => (float y) { y = ReduceMax <keepdims = 0> (x) }",
        {"x": _X},
        np.array(3, np.float32),
    ),
    _f("scalar", "g (float x) => (float y) { y = Neg (x) }", {"x": np.array(2, np.float32)}, np.array(-2, np.float32)),
    _f(
        "transpose-of-a-view",
        "g (float[3,2] x) => (float[2,3] y) { y = Transpose <perm = [1, 0]> (x) }",
        {"x": _X.T},
        _X,
    ),
    _f(
        "dynamic-axis",
        "g (float[N,3] x) => (float[M,3] y) { y = Concat <axis = 0> (x, x) }",
        {"x": _X},
        np.concatenate([_X, _X]),
    ),
    _f("empty", "g (float[N,3] x) => (float[N,3] y) { y = Relu (x) }", {"x": _X[:0]}, _X[:0]),
    _f(
        "several-outputs",
        "g (float[2,3] x) => (float[2,3] b, float[2,3] a, bool[2,3] c) "
        "<float[1] zero = {0}> { a = Neg (x) b = Abs (x) c = Greater (x, zero) }",
        {"x": _X},
        np.abs(_X),
        -_X,
        _X > 0,
    ),
    _f(
        "unused-input",
        "g (float[2,3] x, float[2] z) => (float[2,3] y) { y = Relu (x) }",
        {"x": _X, "z": _X[0, :2]},
        np.maximum(_X, 0),
    ),
    _f("int64", "g (int64[2,3] x) => (int64[2,3] y) { y = Add (x, x) }", {"x": _I}, _I * 2),
    _f(
        "int32",
        "g (int32[2,3] x) => (int32[2,3] y) { y = Mul (x, x) }",
        {"x": _I.astype(np.int32)},
        (_I**2).astype(np.int32),
    ),
    _f("bool", "g (bool[2,3] x) => (bool[2,3] y) { y = Not (x) }", {"x": _X > 0}, ~(_X > 0)),
    _f(
        "cast-to-int",
        "g (float[2,3] x) => (int64[2,3] y) { y = Cast <to = 7> (x) }",
        {"x": _X},
        np.trunc(_X).astype(np.int64),
    ),
    _f(
        "nan-and-infinity",
        "g (float[3] x) => (float[3] y) { y = Neg (x) }",
        {"x": np.array([np.nan, np.inf, -np.inf], np.float32)},
        np.array([np.nan, -np.inf, np.inf], np.float32),
    ),
    _f(
        "uint8",
        "g (uint8[3] x) => (float[3] y) { y = Cast <to = 1> (x) }",
        {"x": np.array([0, 7, 255], np.uint8)},
        np.array([0, 7, 255], np.float32),
    ),
    _f(
        "float64",
        "g (double[2,3] x) => (double[2,3] y) { y = Add (x, x) }",
        {"x": _X.astype(np.float64)},
        _X.astype(np.float64) * 2,
        needed=False,
    ),
    _f(
        "float16",
        "g (float16[2,3] x) => (float16[2,3] y) { y = Add (x, x) }",
        {"x": _X.astype(np.float16)},
        (_X * 2).astype(np.float16),
        needed=False,
    ),
    _f(
        "text",
        "g (string[2] x) => (string[2] y) { y = Identity (x) }",
        {"x": np.array(["one", "zwölf"], object)},
        np.array(["one", "zwölf"], object),
        needed=False,
    ),
    _f(
        "sequence",
        "g (float[2,3] x) => (float[2,3] y) <int64 at = {0}> { s = SequenceConstruct (x) y = SequenceAt (s, at) }",
        {"x": _X},
        _X,
        needed=False,
    ),
)
