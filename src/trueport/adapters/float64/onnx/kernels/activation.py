"""Activation functions, in forms that keep full relative accuracy in the tails."""

from __future__ import annotations

import math

import numpy as np
from scipy import special

from trueport.adapters.float64.onnx.dtypes import Array
from trueport.adapters.float64.onnx.registry import Call, kernel

_SPLIT = 134217729.0  # 2**27 + 1: Veltkamp splitting of a double into two halves of 26 bits


def sigmoid(x: Array) -> Array:
    """Returns 1 / (1 + exp(-x))."""
    result: Array = special.expit(x)
    return result


def softplus(x: Array) -> Array:
    """Returns log(1 + exp(x))."""
    return np.logaddexp(0.0, x)


def gelu(x: Array) -> Array:
    """Returns x times the standard normal distribution function at x.

    For x < -1 the distribution function is erfcx(-x/sqrt 2) exp(-x^2/2) / 2 with the rounding error of x^2 put back:
    erfc itself would multiply the rounding of its argument by x^2.
    """
    result = 0.5 * x * special.erfc(-x * math.sqrt(0.5))
    tail = (x < -1.0) & (x > -1e3)
    if np.any(tail):
        t = np.asarray(x)[tail]
        square = t * t
        split = t * _SPLIT
        high = split - (split - t)
        low = t - high
        error = ((high * high - square) + 2.0 * high * low) + low * low
        scaled = special.erfcx(-t * math.sqrt(0.5))
        exact = 0.5 * t * scaled * np.exp(-0.5 * square) * (1.0 - 0.5 * error)
        result = np.asarray(result)
        result[tail] = exact
    return np.asarray(result)


def gelu_tanh(x: Array) -> Array:
    """Returns the tanh approximation of GELU: x sigmoid(2 sqrt(2/pi) (x + 0.044715 x^3))."""
    return x * sigmoid(2.0 * math.sqrt(2.0 / math.pi) * (x + 0.044715 * x * x * x))


@kernel("Relu", selects=True)
def relu(call: Call, x: Array) -> Array:
    """Returns max(x, 0); NaN stays."""
    del call
    return np.asarray(np.maximum(x, x.dtype.type(0)))


@kernel("LeakyRelu")
def leaky_relu(call: Call, x: Array) -> Array:
    """Returns x, below zero alpha x."""
    return np.where(x < 0, call.attributes["alpha"] * x, x)


@kernel("PRelu")
def prelu(call: Call, x: Array, slope: Array) -> Array:
    """Returns x, below zero slope x."""
    del call
    return np.where(x < 0, slope * x, x)


@kernel("ThresholdedRelu", selects=True)
def thresholded_relu(call: Call, x: Array) -> Array:
    """Returns x where it exceeds alpha, else 0."""
    return np.where(x > call.attributes["alpha"], x, 0.0)


@kernel("Elu")
def elu(call: Call, x: Array) -> Array:
    """Returns x, below zero alpha (exp(x) - 1)."""
    return np.asarray(np.where(x < 0, call.attributes["alpha"] * np.expm1(x), x))


@kernel("Celu")
def celu(call: Call, x: Array) -> Array:
    """Returns max(0, x) + min(0, alpha (exp(x / alpha) - 1))."""
    alpha = call.attributes["alpha"]
    return np.asarray(np.maximum(0.0, x) + np.minimum(0.0, alpha * np.expm1(x / alpha)))


@kernel("Selu")
def selu(call: Call, x: Array) -> Array:
    """Returns gamma x, at and below zero gamma alpha (exp(x) - 1)."""
    alpha, gamma = call.attributes["alpha"], call.attributes["gamma"]
    return np.asarray(gamma * np.where(x > 0, x, alpha * np.expm1(x)))


@kernel("Gelu")
def gelu_kernel(call: Call, x: Array) -> Array:
    """Returns GELU, exact or with the tanh approximation."""
    return gelu_tanh(x) if call.attributes.get("approximate") == "tanh" else gelu(x)


@kernel("Sigmoid")
def sigmoid_kernel(call: Call, x: Array) -> Array:
    """Returns the logistic function."""
    del call
    return sigmoid(x)


@kernel("HardSigmoid")
def hard_sigmoid(call: Call, x: Array) -> Array:
    """Returns max(0, min(1, alpha x + beta))."""
    return np.asarray(np.clip(call.attributes["alpha"] * x + call.attributes["beta"], 0.0, 1.0))


@kernel("HardSwish")
def hard_swish(call: Call, x: Array) -> Array:
    """Returns x max(0, min(1, x/6 + 1/2)), with the sixth that the standard names, not its float32 rounding."""
    del call
    return x * np.clip(x / 6.0 + 0.5, 0.0, 1.0)


@kernel("Softplus")
def softplus_kernel(call: Call, x: Array) -> Array:
    """Returns log(1 + exp(x))."""
    del call
    return softplus(x)


@kernel("Softsign")
def softsign(call: Call, x: Array) -> Array:
    """Returns x / (1 + |x|)."""
    del call
    return x / (1.0 + np.abs(x))


@kernel("Mish")
def mish(call: Call, x: Array) -> Array:
    """Returns x tanh(softplus(x))."""
    del call
    return x * np.tanh(softplus(x))


@kernel("Swish")
def swish(call: Call, x: Array) -> Array:
    """Returns x sigmoid(alpha x)."""
    return x * sigmoid(call.attributes["alpha"] * x)


@kernel("Shrink")
def shrink(call: Call, x: Array) -> Array:
    """Returns x moved toward zero by bias outside [-lambd, lambd], else 0."""
    lambd, bias = call.attributes["lambd"], call.attributes["bias"]
    result = np.where(x < -lambd, x + bias, np.where(x > lambd, x - bias, np.zeros_like(x)))
    return result.astype(x.dtype, copy=False)
