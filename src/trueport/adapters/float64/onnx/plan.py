"""A graph made ready to run: numbered slots for values, resolved kernels, and each value freed after its last use."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from trueport.adapters.float64.onnx.dtypes import Array
from trueport.adapters.float64.onnx.registry import Call, Node
from trueport.adapters.float64.onnx.saturation import saturate
from trueport.core.errors import ToolError

Observer = Callable[[Node, "list[str]", "list[Any]"], None]
Perturbation = Callable[["Step", "list[Any]", int, Array], Array]
"""(step, arguments, number of the output, value) -> the value with rounding noise."""
Table = Mapping[str, Array]

# What NumPy and PyTorch raise for operands that do not fit; anything else is a bug of ours and is left alone.
_OPERAND_ERRORS = (ValueError, IndexError, OverflowError, ZeroDivisionError, RuntimeError, np.linalg.LinAlgError)


@dataclass(slots=True)
class Step:
    """One node of a plan.

    Attributes:
        inputs: slots of the arguments; slot 0 always holds None and stands for an omitted input.
        outputs: slots of the results; slot 1 receives those without a name and is never read.
        limits: (output, limits of its type) where the output can overflow or underflow its declared type.
        frees: slots that nothing reads afterwards.
        bodies: subgraphs by attribute name, or None where the operator has none.
    """

    call: Call
    function: Callable[..., Any]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    limits: tuple[tuple[int, tuple[float, float]], ...]
    frees: tuple[int, ...]
    bodies: dict[str, Plan] | None


@dataclass(slots=True)
class Plan:
    """A graph, subgraph or function body.

    Attributes:
        inputs: slots of the formal inputs, in order.
        optional: slots of initializers that are also declared as inputs, by name: a caller may override them.
        constants: (slot, key in the table of constants).
        literals: (node, slots) of `Constant` nodes; they run nothing and are only observed.
        captures: (slot of the enclosing plan, own slot).
        output_types: declared element types of the outputs.
    """

    name: str
    size: int
    inputs: tuple[int, ...]
    optional: dict[str, int]
    constants: tuple[tuple[int, str], ...]
    literals: tuple[tuple[Node, int], ...]
    captures: tuple[tuple[int, int], ...]
    steps: tuple[Step, ...]
    outputs: tuple[int, ...]
    output_types: tuple[str, ...]

    def execute(
        self,
        arguments: Sequence[Any],
        table: Table,
        outer: Sequence[Any] = (),
        overrides: Mapping[str, Array] | None = None,
        observe: Observer | None = None,
        perturb: Perturbation | None = None,
    ) -> list[Any]:
        """Returns the outputs for `arguments`.

        Args:
            arguments: one value for each formal input.
            table: value of each constant by its key.
            outer: the slots of the enclosing plan.
            overrides: values for entries of `optional`.
            observe: called after each node.
            perturb: gives each inexact output of a narrow type its rounding noise.

        Raises:
            ToolError: an operator does not accept its operands.
        """
        values = self._start(arguments, table, outer, overrides)
        if observe is not None:
            for node, slot in self.literals:
                observe(node, list(node.outputs), [values[slot]])
        step = None
        try:
            for step in self.steps:
                self._run_step(step, values, table, perturb)
                if perturb is not None and step.limits:
                    arguments_now = [values[slot] for slot in step.inputs]
                    for index, _ in step.limits:
                        slot = step.outputs[index]
                        values[slot] = perturb(step, arguments_now, index, values[slot])
                if observe is not None:
                    observe(step.call.node, list(step.call.node.outputs), [values[slot] for slot in step.outputs])
                for slot in step.frees:
                    values[slot] = None
        except _OPERAND_ERRORS as error:
            if step is None:
                raise
            node = step.call.node
            raise ToolError(f"node '{node.label}' ({node.operator}) cannot be evaluated: {error}") from error
        return [values[slot] for slot in self.outputs]

    def _start(
        self, arguments: Sequence[Any], table: Table, outer: Sequence[Any], overrides: Mapping[str, Array] | None
    ) -> list[Any]:
        values: list[Any] = [None] * self.size
        for slot, key in self.constants:
            values[slot] = table[key]
        for slot, value in zip(self.inputs, arguments, strict=True):
            values[slot] = value
        for outer_slot, slot in self.captures:
            values[slot] = outer[outer_slot]
        if overrides:
            for name, value in overrides.items():
                values[self.optional[name]] = value
        return values

    @staticmethod
    def _run_step(step: Step, values: list[Any], table: Table, perturb: Perturbation | None) -> None:
        arguments = [values[slot] for slot in step.inputs]
        if step.bodies is None:
            result = step.function(step.call, *arguments)
        else:
            bodies = {name: partial(_run_body, body, table, values, perturb) for name, body in step.bodies.items()}
            result = step.function(step.call, bodies, *arguments)
        if type(result) is not tuple:
            result = (result,)
        for slot, value in zip(step.outputs, result, strict=False):
            # NumPy turns results of rank 0 into scalars.
            values[slot] = np.asarray(value) if isinstance(value, np.generic) else value
        for index, limits in step.limits:
            slot = step.outputs[index]
            values[slot] = saturate(values[slot], limits)


def _run_body(
    body: Plan, table: Table, outer: Sequence[Any], perturb: Perturbation | None, *arguments: Any
) -> list[Any]:
    return body.execute(arguments, table, outer, perturb=perturb)
