"""Every node of a graph evaluated in float64 on values that somebody else computed, with its own rounding noise.

Each node is given exactly what a runtime gave it, so that what it does wrong is its own fault and nobody else's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from trueport.adapters.float64.onnx.dialect import ONNX
from trueport.adapters.float64.onnx.dtypes import Array, promote
from trueport.adapters.float64.onnx.plan import Plan, Step
from trueport.adapters.float64.replay.rounding import Budget, Rounding, noisy_runs
from trueport.core.errors import ToolError
from trueport.oracle.units import FLOAT_TYPES

Take = Callable[["tuple[str, ...]"], "list[Any]"]
"""(names of values) -> what the runtime computed there, in its own types; called once per node, in their order."""

_PUSHES = 4
"""Moves of the arguments, each with its opposite; the first is the same for all elements."""
_INNER_PLACES = 8.0
_OPERAND_ERRORS = (ToolError, ValueError, IndexError, OverflowError, ZeroDivisionError, RuntimeError, TypeError)
_DECIDES_INSIDE = frozenset({"NonMaxSuppression", "GridSample", "Resize", "Upsample", "RoiAlign", "TfIdfVectorizer"})
"""Operators that compute in their own type what they then decide by, whatever they are given."""
_HALF = frozenset({"float16", "bfloat16"})
_NORMWISE = frozenset(
    {"DFT", "STFT", "BlackmanWindow", "HannWindow", "HammingWindow", "MelWeightMatrix", "CausalConvWithState",
     "LinearAttention"}
)  # fmt: skip
"""Operators whose error is in proportion to their largest value: angles are rounded, or sums have no table of terms."""


@dataclass(frozen=True, eq=False)
class LocalStep:
    """One node of the main graph on the runtime's own values.

    Attributes:
        name: of the node, or of its first output.
        operator: its type.
        reads: names of the values that it takes, those that its subgraphs capture included.
        outputs: names of the values that it makes; '' for one left out.
        types: declared element types of the outputs, '' where unknown.
        exact: its outputs in float64, None where `error` says why not.
        got: what the runtime computed.
        error: what the float64 evaluation raised.
        random: whether it, or a node inside it, draws random numbers.
        noise: number of draws -> outputs with the rounding noise that the node itself may have.
        pushed: outputs where what the node decides by is moved by its own rounding; empty where it decides nothing.
        undefined: elements for which the specification does not say what the first output is, or None.
    """

    name: str
    operator: str
    reads: tuple[str, ...]
    outputs: tuple[str, ...]
    types: tuple[str, ...]
    exact: Sequence[Any] | None
    got: Sequence[Any]
    error: Exception | None
    random: bool
    noise: Callable[[int], list[list[Any]]]
    pushed: Callable[[], list[list[Any]]]
    undefined: Callable[[], Array | None]


def run_locally(
    plan: Plan, values: list[Any], table: Mapping[str, Array], take: Take, *, random: frozenset[str],
    budgets: Mapping[str, Budget], seed: int,
) -> Iterator[LocalStep]:  # fmt: skip
    """Yields the nodes of a plan in order; each must be looked at before the next one is asked for.

    Args:
        plan: of the main graph.
        values: its slots, with inputs and constants filled in.
        table: value of each constant by its key.
        take: gives the runtime's values.
        random: operators that draw random numbers.
        budgets: what the runtime's kernels may be off by.
        seed: of the noise.
    """
    names = _names_of_slots(plan)
    for number, step in enumerate(plan.steps):
        with np.errstate(all="ignore"):
            yield _local(step, values, table, take, names, random, budgets, [seed, number])
        for slot in step.frees:
            values[slot] = None


def _local(
    step: Step, values: list[Any], table: Mapping[str, Array], take: Take, names: Mapping[int, str],
    random: frozenset[str], budgets: Mapping[str, Budget], seed: Sequence[int],
) -> LocalStep:  # fmt: skip
    before = list(values)
    arguments = [values[slot] for slot in step.inputs]
    exact, error = _computed(step, before, table)
    outputs = step.call.node.outputs
    got = take(tuple(name for name in outputs if name))
    found = {name: _array(value) for name, value in zip((name for name in outputs if name), got, strict=True)}
    for name, slot in zip(outputs, step.outputs, strict=True):
        if name:
            values[slot] = _held(found[name])
    inside = [s.operator for body in (step.bodies or {}).values() for s in body.all_steps()]
    captured = [names.get(outer, "") for body in (step.bodies or {}).values() for outer, _ in body.captures]

    def noise(draws: int) -> list[list[Any]]:
        def run(rounding: Rounding, rng: np.random.Generator) -> list[Any]:
            if not step.nested:
                return _noisier(step, arguments, rounding(step, arguments, list(exact or ())), rng)
            return list(_computed(step, list(before), table, rounding)[0] or ())

        with np.errstate(all="ignore"):
            return noisy_runs(run, ONNX, draws=draws, seed=seed, wide=False, budgets=budgets)

    return LocalStep(
        step.label, step.operator, tuple(n for n in (*step.call.node.inputs, *captured) if n), outputs,
        step.output_types, exact, [found.get(name) for name in outputs], error,
        not random.isdisjoint((step.operator, *inside)), noise,
        lambda: _pushed(step, arguments, seed), lambda: _undefined(step, arguments),
    )  # fmt: skip


def _computed(
    step: Step, values: list[Any], table: Mapping[str, Array], follow: Rounding | None = None
) -> tuple[list[Any] | None, Exception | None]:
    """Returns the outputs for the values in the slots, or why there are none; `values` may be written to."""
    try:
        Plan._run_step(step, values, table, follow)
    except _OPERAND_ERRORS as error:
        return None, error
    return [values[slot] for slot in step.outputs], None


def _unrounded(step: Step) -> float:
    """By how much what a node was given may differ from what was seen of it, relatively.

    ONNX Runtime computes half precision in single precision where it has no other kernel, and rounds between two such
    nodes only what is shown.
    """
    return max((FLOAT_TYPES[t].unit_roundoff for t in step.call.input_types if t in _HALF), default=0.0)


def _noisier(step: Step, arguments: list[Any], outputs: list[Any], rng: np.random.Generator) -> list[Any]:
    """Adds noise that upstream noise hides unless a node is judged alone."""
    first = outputs[0] if outputs else None
    kind = FLOAT_TYPES.get(step.output_types[0]) if outputs else None
    if not isinstance(first, np.ndarray) or first.dtype.kind != "f" or first.size == 0 or kind is None:
        return outputs
    noise = _inner(step, arguments, first, min(kind.unit_roundoff, FLOAT_TYPES["float32"].unit_roundoff))
    moved = first + np.where(np.isfinite(noise), noise, 0.0) * rng.standard_normal(first.shape)
    given = _unrounded(step)
    if given:
        pushed = [_moved(a, given * float(rng.standard_normal()), rng, coherent=False) for a in arguments]
        with suppress(*_OPERAND_ERRORS):
            shift = np.asarray(step.apply(pushed)[0]) - np.asarray(step.apply(arguments)[0])
            moved = moved + np.where(np.isfinite(shift), shift, 0.0)
    return [np.asarray(moved), *outputs[1:]]


def _inner(step: Step, arguments: list[Any], first: Array, unit: float) -> Array:
    """The noise of sums inside an operator whose terms cancel, where the dialect has no table of them."""
    if step.operator in _NORMWISE:
        size = float(np.max(np.abs(first), initial=0.0, where=np.isfinite(first)))
        terms = max((max(a.shape, default=1) for a in _reals(arguments)), default=1)
        return np.full(first.shape, unit * size * max(terms, 4))
    return np.zeros(first.shape)


def _reals(arguments: list[Any]) -> list[Array]:
    return [a for a in arguments if isinstance(a, np.ndarray) and a.dtype.kind == "f"]


def _array(value: Any) -> Any:
    """Returns a runtime's value with a scalar as an array of rank 0."""
    return value if value is None or isinstance(value, list | tuple) else np.asarray(value)


def _pushed(step: Step, arguments: list[Any], seed: Sequence[int]) -> list[list[Any]]:
    jump = ONNX.jumps.get(step.operator)
    if step.nested:
        return []
    size = 0.0
    if step.operator in _DECIDES_INSIDE or (jump is not None and jump.inner):
        types = [t for t in (*step.call.input_types, *step.output_types) if t in FLOAT_TYPES]
        unit = max((FLOAT_TYPES[t].unit_roundoff for t in types), default=FLOAT_TYPES["float32"].unit_roundoff)
        size = ((jump.inner if jump is not None else 0.0) or _INNER_PLACES) * unit
    if jump is not None and jump.when(step, arguments):
        size = max(size, _unrounded(step))
    if not size:
        return []
    found = []
    for number in range(_PUSHES):
        for sign in (1.0, -1.0):
            rng = np.random.default_rng([*seed, number, 0x70])
            moved = [_moved(a, sign * size, rng, coherent=number == 0) for a in arguments]
            with np.errstate(all="ignore"), suppress(*_OPERAND_ERRORS):
                found.append(list(step.apply(moved)))
    return found


def _moved(value: Any, size: float, rng: np.random.Generator, *, coherent: bool) -> Any:
    if not isinstance(value, np.ndarray) or value.dtype.kind != "f":
        return value
    signs = (1.0 if rng.integers(2) else -1.0) if coherent else rng.choice([-1.0, 1.0], size=value.shape)
    return np.asarray(value * (1 + size * signs))


def _undefined(step: Step, arguments: list[Any]) -> Array | None:
    jump = ONNX.jumps.get(step.operator)
    if jump is None or jump.undefined is None or not jump.when(step, arguments):
        return None
    return jump.undefined(step, arguments)


def _held(value: Any) -> Any:
    """Returns a runtime's value as the evaluation holds it."""
    if value is None:
        return None
    return [_held(item) for item in value] if isinstance(value, list | tuple) else promote(np.asarray(value))


def _names_of_slots(plan: Plan) -> dict[int, str]:
    names: dict[int, str] = {}
    for step in plan.steps:
        names.update(zip(step.inputs, step.call.node.inputs, strict=False))
        names.update((s, n) for s, n in zip(step.outputs, step.call.node.outputs, strict=True) if n)
    return names
