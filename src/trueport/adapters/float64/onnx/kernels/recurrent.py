"""LSTM, GRU and RNN in all directions, layouts and with sequences of different lengths."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from trueport.adapters.float64.onnx.dtypes import Array
from trueport.adapters.float64.onnx.kernels.activation import sigmoid, softplus
from trueport.adapters.float64.onnx.registry import Call, kernel

Function = Callable[[Array], Array]

Parameters = tuple[float, float]

# Functions of x and (alpha, beta), by name in lower case.
_ACTIVATIONS: dict[str, Callable[[Array, Parameters], Array]] = {
    "tanh": lambda x, _: np.tanh(x),
    "sigmoid": lambda x, _: sigmoid(x),
    "relu": lambda x, _: np.maximum(x, 0.0),
    "softsign": lambda x, _: x / (1.0 + np.abs(x)),
    "softplus": lambda x, _: softplus(x),
    "affine": lambda x, p: p[0] * x + p[1],
    "leakyrelu": lambda x, p: np.where(x < 0, p[0] * x, x),
    "thresholdedrelu": lambda x, p: np.where(x > p[0], x, 0.0),
    "scaledtanh": lambda x, p: p[0] * np.tanh(p[1] * x),
    "hardsigmoid": lambda x, p: np.clip(p[0] * x + p[1], 0.0, 1.0),
    "elu": lambda x, p: np.where(x < 0, p[0] * np.expm1(x), x),
}
_ALPHA = {"affine": 1.0, "leakyrelu": 0.01, "thresholdedrelu": 1.0, "scaledtanh": 1.0, "hardsigmoid": 0.2, "elu": 1.0}
_BETA = {"affine": 0.0, "scaledtanh": 1.0, "hardsigmoid": 0.5}


def _parameter(name: str, given: list[float], defaults: dict[str, float]) -> float:
    """Returns the next given value if the function takes one, else its default; both are float32 in a file."""
    if name not in defaults:
        return 0.0
    return given.pop(0) if given else float(np.float32(defaults[name]))


def _activations(call: Call, defaults: tuple[str, ...], directions: int) -> list[Function]:
    names = call.attributes.get("activations") or list(defaults) * directions
    alphas = list(call.attributes.get("activation_alpha") or [])
    betas = list(call.attributes.get("activation_beta") or [])
    limit = call.attributes.get("clip")
    functions: list[Function] = []
    for name in (name.lower() for name in names):
        parameters = _parameter(name, alphas, _ALPHA), _parameter(name, betas, _BETA)

        def run(x: Array, function: Any = _ACTIVATIONS[name], parameters: Parameters = parameters) -> Array:
            result: Array = function(x if limit is None else np.clip(x, -limit, limit), parameters)
            return result

        functions.append(run)
    return functions


@dataclass(frozen=True, slots=True)
class _Layer:
    """The parameters of one direction."""

    w: Array
    r: Array
    b_input: Array
    b_recurrent: Array
    functions: list[Function]
    peepholes: Array


Cell = Callable[["_Layer", Array, "tuple[Array, ...]"], "tuple[Array, ...]"]


def _layers(
    call: Call,
    w: Array,
    r: Array,
    b: Array | None,
    gates: int,
    defaults: tuple[str, ...],
    peepholes: Array | None = None,
) -> list[_Layer]:
    directions, width = w.shape[0], gates * r.shape[-1]
    functions = _activations(call, defaults, directions)
    layers = []
    for d in range(directions):
        biases = np.zeros((2, width)) if b is None else b[d].reshape(2, width)
        own = functions[d * len(defaults) : (d + 1) * len(defaults)]
        peeps = np.zeros((3, r.shape[-1])) if peepholes is None else peepholes[d].reshape(3, -1)
        layers.append(_Layer(w[d], r[d], biases[0], biases[1], own, peeps))
    return layers


def _run_direction(
    cell: Cell, layer: _Layer, x: Array, state: tuple[Array, ...], lengths: Array | None, *, backward: bool
) -> tuple[Array, tuple[Array, ...]]:
    """Returns the hidden states of all steps, zero behind the end of each sequence, and the last state."""
    outputs = np.zeros((x.shape[0], x.shape[1], state[0].shape[-1]))
    for t in range(x.shape[0] - 1, -1, -1) if backward else range(x.shape[0]):
        following = cell(layer, x[t], state)
        if lengths is None:
            state = following
            outputs[t] = following[0]
        else:
            # A sequence that has ended (or, backward, not begun) keeps its state.
            active = (t < lengths)[:, None]
            state = tuple(np.where(active, new, old) for new, old in zip(following, state, strict=True))
            outputs[t] = np.where(active, following[0], 0.0)
    return outputs, state


def _run(
    call: Call,
    cell: Cell,
    layers: list[_Layer],
    x: Array,
    lengths: Array | None,
    initial: list[Array | None],
    hidden: int,
) -> tuple[Array, ...]:
    """Returns Y and the last value of each part of the state, in the layout of the node."""
    batch_first = bool(call.attributes.get("layout", 0))
    if batch_first:
        x = np.swapaxes(x, 0, 1)
        initial = [None if part is None else np.swapaxes(part, 0, 1) for part in initial]
    expected = (len(layers), x.shape[1], hidden)
    for part in initial:
        if part is not None and part.shape != expected:
            # NumPy would repeat one state for every sequence; the standard does not.
            raise ValueError(f"expected an initial state of shape {list(expected)}, got {list(part.shape)}")
    backward_first = call.attributes.get("direction", "forward") == "reverse"
    outputs, states = [], []
    for d, layer in enumerate(layers):
        zeros = np.zeros((x.shape[1], hidden))
        state = tuple(zeros if part is None else part[d] for part in initial)
        y, last = _run_direction(cell, layer, x, state, lengths, backward=backward_first or d == 1)
        outputs.append(y)
        states.append(last)
    y = np.stack(outputs, axis=1)
    finals = [np.stack(parts) for parts in zip(*states, strict=True)]
    if batch_first:
        y = np.transpose(y, (2, 0, 1, 3))
        finals = [np.swapaxes(part, 0, 1) for part in finals]
    return (y, *finals)


@kernel("RNN")
def rnn(
    call: Call, x: Array, w: Array, r: Array, b: Array | None = None, lengths: Array | None = None,
    initial_h: Array | None = None,
) -> tuple[Array, ...]:  # fmt: skip
    """Returns the hidden states and the last of them."""

    def cell(layer: _Layer, x_t: Array, state: tuple[Array, ...]) -> tuple[Array, ...]:
        total = x_t @ layer.w.T + state[0] @ layer.r.T + (layer.b_input + layer.b_recurrent)
        return (layer.functions[0](total),)

    return _run(call, cell, _layers(call, w, r, b, 1, ("Tanh",)), x, lengths, [initial_h], r.shape[-1])


@kernel("GRU")
def gru(
    call: Call, x: Array, w: Array, r: Array, b: Array | None = None, lengths: Array | None = None,
    initial_h: Array | None = None,
) -> tuple[Array, ...]:  # fmt: skip
    """Returns the hidden states and the last of them."""
    hidden = r.shape[-1]
    linear = bool(call.attributes.get("linear_before_reset", 0))

    def cell(layer: _Layer, x_t: Array, state: tuple[Array, ...]) -> tuple[Array, ...]:
        (h,) = state
        f, g = layer.functions
        from_x = x_t @ layer.w.T + layer.b_input
        gates = h @ layer.r[: 2 * hidden].T + layer.b_recurrent[: 2 * hidden] + from_x[:, : 2 * hidden]
        z, reset = f(gates[:, :hidden]), f(gates[:, hidden:])
        r_h, b_h = layer.r[2 * hidden :], layer.b_recurrent[2 * hidden :]
        recurrent = reset * (h @ r_h.T + b_h) if linear else (reset * h) @ r_h.T + b_h
        candidate = g(from_x[:, 2 * hidden :] + recurrent)
        return ((1.0 - z) * candidate + z * h,)

    return _run(call, cell, _layers(call, w, r, b, 3, ("Sigmoid", "Tanh")), x, lengths, [initial_h], hidden)


@kernel("LSTM")
def lstm(
    call: Call, x: Array, w: Array, r: Array, b: Array | None = None, lengths: Array | None = None,
    initial_h: Array | None = None, initial_c: Array | None = None, peepholes: Array | None = None,
) -> tuple[Array, ...]:  # fmt: skip
    """Returns the hidden states, the last of them and the last cell state."""
    hidden = r.shape[-1]
    coupled = bool(call.attributes.get("input_forget", 0))
    layers = _layers(call, w, r, b, 4, ("Sigmoid", "Tanh", "Tanh"), peepholes)

    def cell(layer: _Layer, x_t: Array, state: tuple[Array, ...]) -> tuple[Array, ...]:
        h, c = state
        f, g, squash = layer.functions
        peep_i, peep_o, peep_f = layer.peepholes
        gates = x_t @ layer.w.T + h @ layer.r.T + (layer.b_input + layer.b_recurrent)
        i, o, forget, new = np.split(gates, 4, axis=-1)
        i = f(i + peep_i * c)
        forget = 1.0 - i if coupled else f(forget + peep_f * c)
        cell_state = forget * c + i * g(new)
        return f(o + peep_o * cell_state) * squash(cell_state), cell_state

    return _run(call, cell, layers, x, lengths, [initial_h, initial_c], hidden)
