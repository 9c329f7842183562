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


@kernel("Scan", selects=True, control=True, supports=lambda call: call.opset >= 9)
def scan(call: Call, bodies: Bodies, *inputs: Array) -> tuple[Any, ...]:
    """Returns the state after the last slice of the scanned inputs, then the values collected for each."""
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
    collected: list[list[Any]] = [[] for _ in range(n_collected)]
    for step in range(slices[0].shape[0]):
        results = bodies["body"](*state, *(x[step, ...] for x in map(np.asarray, slices)))
        state = results[: len(state)]
        for values, value in zip(collected, results[len(state) :], strict=False):
            values.append(value)
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
