"""Arithmetic and transcendental functions of single elements. Integers follow C, as ONNX has it."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from scipy import special

from trueport.adapters.float64.onnx.dtypes import LARGEST, Array
from trueport.adapters.float64.onnx.registry import Call, kernel


def _register_unary(op_type: str, function: Any, *, selects: bool = False) -> None:
    def run(call: Call, x: Array) -> Array:
        del call
        result: Array = function(x)
        return result

    kernel(op_type, selects=selects)(run)


def _register_binary(op_type: str, function: Any) -> None:
    def run(call: Call, a: Array, b: Array) -> Array:
        del call
        result: Array = function(a, b)
        return result

    kernel(op_type)(run)


for _name, _function in {
    "Sqrt": np.sqrt, "Exp": np.exp, "Log": np.log, "Erf": special.erf,
    "Sin": np.sin, "Cos": np.cos, "Tan": np.tan, "Asin": np.arcsin, "Acos": np.arccos, "Atan": np.arctan,
    "Sinh": np.sinh, "Cosh": np.cosh, "Tanh": np.tanh, "Asinh": np.arcsinh, "Acosh": np.arccosh, "Atanh": np.arctanh,
}.items():  # fmt: skip
    _register_unary(_name, _function)

for _name, _function in {
    "Neg": np.negative, "Abs": np.abs, "Sign": np.sign, "Floor": np.floor, "Ceil": np.ceil, "Round": np.rint,
}.items():  # fmt: skip
    _register_unary(_name, _function, selects=True)

for _name, _function in {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply}.items():
    _register_binary(_name, _function)


@kernel("Reciprocal")
def reciprocal(call: Call, x: Array) -> Array:
    """Returns 1 / x."""
    del call
    return np.divide(1.0, x)


def _refuse_zero(divisor: Array) -> None:
    """Raises where integers are divided by zero, which is not defined; some runtimes end the process there."""
    if not divisor.all():
        raise ZeroDivisionError("an integer is divided by zero")


@kernel("Div")
def divide(call: Call, a: Array, b: Array) -> Array:
    """Returns a / b; integers truncate toward zero."""
    del call
    if a.dtype.kind == "f":
        return np.divide(a, b)
    _refuse_zero(b)
    quotient = np.floor_divide(a, b)
    if a.dtype.kind == "i":
        inexact = np.not_equal(quotient * b, a)
        quotient = quotient + (inexact & ((a < 0) ^ (b < 0))).astype(quotient.dtype)
    return quotient


@kernel("Mod")
def modulo(call: Call, a: Array, b: Array) -> Array:
    """Returns the remainder: with the sign of the divisor, or with `fmod` that of the dividend."""
    if b.dtype.kind in "iu":
        _refuse_zero(b)
    return np.fmod(a, b) if call.attributes.get("fmod", 0) else np.mod(a, b)


@kernel("Pow")
def power(call: Call, base: Array, exponent: Array) -> Array:
    """Returns base to the exponent in the type of the base."""
    del call
    if exponent.size == 1 and base.dtype.kind == "f" and exponent.reshape(()) == 2:
        # Correctly rounded, and what runtimes do; broadcasting may still add dimensions.
        shape = np.broadcast_shapes(base.shape, exponent.shape)
        return np.square(base).reshape(shape)
    if base.dtype.kind in "iu" and exponent.dtype.kind in "iu" and not np.any(exponent < 0):
        return np.power(base, exponent).astype(base.dtype, copy=False)
    return np.power(base, exponent, dtype=np.float64).astype(base.dtype, copy=False)


@kernel("Max", selects=True)
def maximum(call: Call, *values: Array) -> Array:
    """Returns the largest of the inputs; NaN if any is."""
    del call
    return functools.reduce(np.maximum, values)


@kernel("Min", selects=True)
def minimum(call: Call, *values: Array) -> Array:
    """Returns the smallest of the inputs; NaN if any is."""
    del call
    return functools.reduce(np.minimum, values)


@kernel("Sum")
def add_all(call: Call, *values: Array) -> Array:
    """Returns the sum of the inputs."""
    del call
    return functools.reduce(np.add, values)


@kernel("Mean")
def mean_of_inputs(call: Call, *values: Array) -> Array:
    """Returns the mean of the inputs."""
    del call
    return functools.reduce(np.add, values) / len(values)


@kernel("Clip", selects=True)
def clip(call: Call, x: Array, low: Array | None = None, high: Array | None = None) -> Array:
    """Returns x limited to [low, high], high first where they cross; absent bounds are the type's largest values."""
    lower: Any = call.attributes.get("min") if low is None else low
    upper: Any = call.attributes.get("max") if high is None else high
    if x.dtype.kind == "f":
        # The standard's default bounds are the largest finite values, so an infinity does not pass.
        largest = LARGEST.get(call.input_types[0], np.inf)
        lower = -largest if lower is None else lower
        upper = largest if upper is None else upper
    result = x if lower is None else np.maximum(x, lower)
    result = result if upper is None else np.minimum(result, upper)
    return np.asarray(result).reshape(x.shape)


@kernel("BitShift")
def bit_shift(call: Call, x: Array, count: Array) -> Array:
    """Returns x shifted by count bits in the given direction."""
    if call.attributes["direction"] == "LEFT":
        return np.left_shift(x, count)
    return np.right_shift(x, count)


_register_binary("BitwiseAnd", np.bitwise_and)
_register_binary("BitwiseOr", np.bitwise_or)
_register_binary("BitwiseXor", np.bitwise_xor)
_register_unary("BitwiseNot", np.invert)
