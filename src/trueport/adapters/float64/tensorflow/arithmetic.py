"""Everyday operators in NumPy: what TensorFlow's eager runtime would compute in float64, without its cost per call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

Array = NDArray[Any]
Attributes = Mapping[str, Any]


def _plain(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda _attributes, *arguments: function(*arguments)


def _matmul(attributes: Attributes, a: Array, b: Array) -> Array:
    left = np.swapaxes(a, -1, -2) if attributes.get("transpose_a") or attributes.get("adj_x") else a
    right = np.swapaxes(b, -1, -2) if attributes.get("transpose_b") or attributes.get("adj_y") else b
    return np.asarray(left @ right)


def _bias_add(attributes: Attributes, value: Array, bias: Array) -> Array:
    if str(attributes.get("data_format", "NHWC")).startswith("NC"):
        return np.asarray(value + bias.reshape(bias.shape + (1,) * (value.ndim - 2)))
    return np.asarray(value + bias)


def _concatenated(_: Attributes, *arguments: Array) -> Array:
    return np.concatenate(arguments[:-1], axis=int(arguments[-1]))


def _packed(attributes: Attributes, *arguments: Array) -> Array:
    return np.stack(arguments, axis=int(attributes.get("axis", 0)))


def _split(attributes: Attributes, axis: Array, value: Array) -> tuple[Array, ...]:
    return tuple(np.split(value, int(attributes["num_split"]), axis=int(axis)))


def _rsqrt(x: Array) -> Array:
    return np.asarray(1.0 / np.sqrt(x))


_ELEMENTWISE: dict[str, Callable[..., Any]] = {
    "Add": np.add, "AddV2": np.add, "Sub": np.subtract, "Mul": np.multiply, "RealDiv": np.divide, "Neg": np.negative,
    "Square": np.square, "Sqrt": np.sqrt, "Rsqrt": _rsqrt, "Exp": np.exp, "Tanh": np.tanh, "Sigmoid": special.expit,
    "Abs": np.abs,
}  # fmt: skip
ARITHMETIC: dict[str, Callable[..., Any]] = {
    **{name: _plain(function) for name, function in _ELEMENTWISE.items()},
    "MatMul": _matmul,
    "BatchMatMul": _matmul,
    "BatchMatMulV2": _matmul,
    "BiasAdd": _bias_add,
    "ConcatV2": _concatenated,
    "Pack": _packed,
    "Split": _split,
}
"""Operator -> function of (attributes, *arguments); for arguments that are all of float64."""


def applies(operator: str, arguments: tuple[Any, ...]) -> bool:
    """Whether the operator is one of these and its floating-point arguments are arrays of float64.

    Integers are left to TensorFlow, except as the axis of a concatenation or a split.
    """
    if operator not in ARITHMETIC:
        return False
    values = arguments[:-1] if operator == "ConcatV2" else arguments[1:] if operator == "Split" else arguments
    return all(isinstance(v, np.ndarray) and v.dtype == np.float64 for v in values)
