"""Operators that run subgraphs. A subgraph sees the values of the graphs around it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from trueport.adapters.float64.onnx.dtypes import Array, held_dtype
from trueport.adapters.float64.onnx.registry import Call, kernel

Bodies = Mapping[str, Callable[..., "list[Any]"]]


@kernel("If", selects=True, control=True)
def if_(call: Call, bodies: Bodies, condition: Array) -> tuple[Any, ...]:
    """Returns the outputs of the branch that the condition selects."""
    del call
    return tuple(bodies["then_branch" if condition.reshape(-1)[0] else "else_branch"]())


@kernel("Loop", selects=True, control=True)
def loop(
    call: Call, bodies: Bodies, limit: Array | None, condition: Array | None = None, *carried: Any
) -> tuple[Any, ...]:
    """Returns the carried values after the last iteration, then the values collected in each."""
    count = None if limit is None else int(limit.reshape(()))
    going = condition is None or bool(condition.reshape(()))
    state = list(carried)
    collected: list[list[Any]] = [[] for _ in range(call.n_outputs - len(state))]
    iteration = 0
    while going and (count is None or iteration < count):
        results = bodies["body"](np.asarray(iteration, dtype=np.int64), np.asarray(going), *state)
        going = bool(results[0].reshape(()))
        state = results[1 : 1 + len(state)]
        for values, value in zip(collected, results[1 + len(state) :], strict=False):
            values.append(value)
        iteration += 1
    return (*state, *(_stack(call, len(state) + i, values, 0) for i, values in enumerate(collected)))


@kernel("SequenceMap", selects=True, control=True)
def sequence_map(call: Call, bodies: Bodies, first: list[Any], *others: Any) -> tuple[Any, ...]:
    """Returns the sequences of what the subgraph gives for each element; inputs that are no sequences stay the same."""
    collected: list[list[Any]] = [[] for _ in range(call.n_outputs)]
    for index, value in enumerate(first):
        arguments = [other[index] if isinstance(other, list) else other for other in others]
        for values, result in zip(collected, bodies["body"](value, *arguments), strict=True):
            values.append(result)
    return tuple(collected)


@kernel("Scan", selects=True, control=True)
def scan(call: Call, bodies: Bodies, *inputs: Any) -> tuple[Any, ...]:
    """Returns the state after the last slice of the scanned inputs, then the values collected for each.

    Before operator set 9 this is done for each element of a batch, as far as its own length goes.
    """
    return _scan(call, bodies, inputs) if call.opset >= 9 else _scan_batch(call, bodies, inputs[0], inputs[1:])


def _scan_batch(call: Call, bodies: Bodies, lengths: Array | None, inputs: tuple[Array, ...]) -> tuple[Any, ...]:
    n_scanned = call.attributes["num_scan_inputs"]
    n_state = len(inputs) - n_scanned
    backward = call.attributes.get("directions") or [0] * n_scanned
    scanned = inputs[n_state:]
    longest = scanned[0].shape[1]
    results: list[list[Any]] = [[] for _ in range(call.n_outputs)]
    for element in range(scanned[0].shape[0]):
        length = longest if lengths is None else int(lengths[element])
        own = [x[element, :length] for x in scanned]
        slices = [np.flip(x, 0) if reverse else x for x, reverse in zip(own, backward, strict=True)]
        state, collected = _steps(bodies, [x[element] for x in inputs[:n_state]], slices, call.n_outputs - n_state)
        found = [*state, *(_filled(call, n_state + i, values, longest) for i, values in enumerate(collected))]
        for values, value in zip(results, found, strict=True):
            values.append(value)
    return tuple(_stack(call, i, values, 0) for i, values in enumerate(results))


def _filled(call: Call, output: int, values: list[Any], longest: int) -> Array:
    """Returns collected values, with zeros where a sequence is shorter than the longest."""
    stacked = _stack(call, output, values, 0)
    return np.concatenate([stacked, np.zeros((longest - len(values), *stacked.shape[1:]), dtype=stacked.dtype)])


def _steps(bodies: Bodies, state: list[Any], slices: list[Array], count: int) -> tuple[list[Any], list[list[Any]]]:
    """Returns the state after all steps, and what was collected in each."""
    collected: list[list[Any]] = [[] for _ in range(count)]
    for step in range(slices[0].shape[0]):
        results = bodies["body"](*state, *(np.asarray(x[step, ...]) for x in slices))
        for values, value in zip(collected, results[len(state) :], strict=False):
            values.append(value)
        state = list(results[: len(state)])
    return state, collected


def _scan(call: Call, bodies: Bodies, inputs: tuple[Array, ...]) -> tuple[Any, ...]:
    attributes = call.attributes
    n_scanned = attributes["num_scan_inputs"]
    state, scanned = list(inputs[: len(inputs) - n_scanned]), inputs[len(inputs) - n_scanned :]
    n_collected = call.n_outputs - len(state)
    axes = attributes.get("scan_input_axes") or [0] * n_scanned
    backward = attributes.get("scan_input_directions") or [0] * n_scanned
    slices = [
        np.flip(np.moveaxis(x, axis, 0), 0) if reverse else np.moveaxis(x, axis, 0)
        for x, axis, reverse in zip(scanned, axes, backward, strict=True)
    ]
    state, collected = _steps(bodies, state, slices, n_collected)
    out_axes = attributes.get("scan_output_axes") or [0] * n_collected
    out_backward = attributes.get("scan_output_directions") or [0] * n_collected
    outputs = []
    for index, (values, axis, reverse) in enumerate(zip(collected, out_axes, out_backward, strict=True)):
        outputs.append(_stack(call, len(state) + index, values[::-1] if reverse else values, axis))
    return (*state, *outputs)


def _stack(call: Call, output: int, values: list[Any], axis: int) -> Array:
    if values:
        return np.stack(values, axis if axis >= 0 else axis + np.ndim(values[0]) + 1)
    declared = call.output_types[output] if output < len(call.output_types) else ""
    return np.zeros((0,), dtype=held_dtype(declared or "float32"))
