"""A graph made ready to run: numbered slots for values, resolved kernels, and each value freed after its last use."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from trueport.adapters.float64.onnx.dtypes import Array
from trueport.adapters.float64.onnx.registry import Call, Node
from trueport.adapters.float64.onnx.saturation import saturate
from trueport.adapters.float64.replay.operation import Follower
from trueport.core.errors import ToolError

Observer = Callable[[Node, "list[str]", "list[Any]"], None]
Table = Mapping[str, Array]

# What NumPy and PyTorch raise for operands that do not fit; anything else is a bug of ours and is left alone.
_OPERAND_ERRORS = (ValueError, IndexError, OverflowError, ZeroDivisionError, RuntimeError, np.linalg.LinAlgError)


@dataclass(slots=True)
class Step:
    """One node of a plan; an `Operation` for those that follow a run.

    Attributes:
        inputs: slots of the arguments; slot 0 always holds None and stands for an omitted input.
        outputs: slots of the results; slot 1 receives those without a name and is never read.
        limits: (output, limits of its type) where the output can overflow or underflow its declared type.
        frees: slots that nothing reads afterwards.
        bodies: subgraphs by attribute name, or None where the operator has none.
        selects: every output element is one of the inputs' or exact in its type.
    """

    call: Call
    function: Callable[..., Any]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    limits: tuple[tuple[int, tuple[float, float]], ...]
    frees: tuple[int, ...]
    bodies: dict[str, Plan] | None
    selects: bool

    @property
    def operator(self) -> str:
        """The operator's name without its domain."""
        return self.call.node.op_type

    @property
    def label(self) -> str:
        """The node's name, or where there is none its first output."""
        return self.call.node.label

    @property
    def source(self) -> str:
        """Nothing: an ONNX file does not say from which line a node came."""
        return ""

    @property
    def attributes(self) -> Mapping[str, Any]:
        """The attributes, defaults included."""
        return self.call.attributes

    @property
    def output_types(self) -> tuple[str, ...]:
        """The declared element types of the outputs."""
        return self.call.output_types

    @property
    def nested(self) -> bool:
        """Whether it runs subgraphs."""
        return self.bodies is not None

    @property
    def coarse(self) -> bool:
        """Never: all kernels compute in float64."""
        return False

    def apply(self, arguments: Sequence[Any]) -> tuple[Any, ...]:
        """Returns the outputs for other arguments."""
        with np.errstate(all="ignore"):
            result = self.function(self.call, *arguments)
            return self.bounded(result if type(result) is tuple else (result,))

    def bounded(self, results: tuple[Any, ...]) -> tuple[Any, ...]:
        """Returns results as they are held: arrays, infinite beyond the range of their declared type."""
        # NumPy turns results of rank 0 into scalars.
        held = [np.asarray(value) if isinstance(value, np.generic) else value for value in results]
        for index, limits in self.limits:
            if index < len(held):
                held[index] = saturate(held[index], limits)
        return tuple(held)


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
        follow: Follower | None = None,
    ) -> list[Any]:
        """Returns the outputs for `arguments`.

        Args:
            arguments: one value for each formal input.
            table: value of each constant by its key.
            outer: the slots of the enclosing plan.
            overrides: values for entries of `optional`.
            observe: called after each node.
            follow: called after each node; what it returns is what the nodes after it see.

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
                self._run_step(step, values, table, follow)
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

    def all_steps(self) -> Iterator[Step]:
        """Yields the steps of this plan and of all plans inside it."""
        for step in self.steps:
            yield step
            for body in (step.bodies or {}).values():
                yield from body.all_steps()

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
    def _run_step(step: Step, values: list[Any], table: Table, follow: Follower | None) -> None:
        arguments = [values[slot] for slot in step.inputs]
        if step.bodies is None:
            result = step.function(step.call, *arguments)
        else:
            bodies = {name: partial(_run_body, body, table, values, follow) for name, body in step.bodies.items()}
            result = step.function(step.call, bodies, *arguments)
        results = step.bounded(result if type(result) is tuple else (result,))[: len(step.outputs)]
        if follow is not None:
            results = tuple(follow(step, arguments, list(results)))
        for slot, value in zip(step.outputs, results, strict=False):
            values[slot] = value


def _run_body(body: Plan, table: Table, outer: Sequence[Any], follow: Follower | None, *arguments: Any) -> list[Any]:
    return body.execute(arguments, table, outer, follow=follow)
