"""The evaluator: what the meaning lane asks of a converted model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
import onnx

from trueport.adapters.float64.onnx import kernels as _kernels  # noqa: F401 - fills the registry
from trueport.adapters.float64.onnx.attributes import Constant
from trueport.adapters.float64.onnx.builder import Builder, Shared, Surroundings, constant_value, opsets_of
from trueport.adapters.float64.onnx.dtypes import Array, elem_type, held_dtype, is_float, promote
from trueport.adapters.float64.onnx.locally import LocalStep, Take, run_locally
from trueport.adapters.float64.onnx.registry import Node
from trueport.adapters.float64.replay.operation import Follower, Operation
from trueport.adapters.float64.replay.rounding import Budget
from trueport.core.errors import UsageError
from trueport.core.trace import TracedNode
from trueport.onnxgraph.origins import origin_of
from trueport.oracle.units import FLOAT_TYPES


class Float64Evaluator:
    """Evaluates an ONNX model with every float16, bfloat16 and float32 value held in float64.

    Nothing is rounded to the declared types, except that a value beyond the range of its declared type becomes
    infinite and one below half its smallest subnormal becomes zero, as it would there. Integers and booleans are
    exact in their own types. Deterministic.

    The model is read once, here; its weights are promoted at the first run and kept. The model is not modified.

    Attributes:
        missing: sorted `domain::OpType` of all operators without a kernel, in subgraphs and functions too. A run
            that reaches one raises `MissingKernel`.
        input_names: inputs that a run must be given, in order.
        output_names: in order.
        input_dtypes: declared element types of the inputs, as NumPy-style names, empty where undeclared.
        output_dtypes: the same for the outputs.
        constants: every floating-point initializer and `Constant` node, in its declared type. Keys are the names of
            the tensors; those in a subgraph or function are prefixed with its name and a colon, and a key that is
            taken already has `#2`, `#3`, ... added.

    Args:
        model: the model; external data loaded, or in `base_dir`.
        base_dir: folder that external data may be read from; with None, a model that refers to any is refused.

    Raises:
        UsageError: a tensor cannot be read, or a node refers to a value that does not exist.

    >>> from onnx import parser
    >>> text = '<ir_version: 8, opset_import: ["": 18]> g (float[2] x) => (float[2] y) { y = Exp(x) }'
    >>> model = parser.parse_model(text)
    >>> Float64Evaluator(model).run({"x": np.array([0.0, 89.0])})
    [array([ 1., inf])]
    """

    def __init__(self, model: onnx.ModelProto, *, base_dir: str | None = None) -> None:
        shared = Shared.of_model(model, base_dir)
        graph = model.graph
        self._plan = Builder(shared, Surroundings(opsets_of(model.opset_import)), graph.name).build_graph(graph, None)
        self._tensors = shared.tensors
        self._table: dict[str, Array] | None = None
        self._declared = {info.name: elem_type(info.type) for info in graph.input}
        self.missing: tuple[str, ...] = tuple(sorted(shared.missing))
        self.input_names: tuple[str, ...] = tuple(i.name for i in graph.input if i.name not in self._plan.optional)
        self.output_names: tuple[str, ...] = tuple(info.name for info in graph.output)
        self.input_dtypes: tuple[str, ...] = tuple(self._declared[name] for name in self.input_names)
        self.output_dtypes: tuple[str, ...] = tuple(elem_type(info.type) for info in graph.output)
        self.constants: Mapping[str, Constant] = MappingProxyType(shared.constants)

    @property
    def output_types(self) -> tuple[str, ...]:
        """The same as `output_dtypes`, as a `Program` calls it; one element type where an output is a sequence."""
        return self.output_dtypes

    @property
    def output_values(self) -> tuple[str, ...]:
        """The names of the outputs: a graph's outputs are values of its nodes."""
        return self.output_names

    def traced(self, operation: Operation) -> TracedNode | None:
        """Returns what is known of a node of the graph itself; None for one in a subgraph or function."""
        return self._traced.get(id(operation))

    @cached_property
    def _traced(self) -> dict[int, TracedNode]:
        found = {}
        for step in self._plan.steps:
            node = step.call.node
            origin = origin_of(node.metadata)
            found[id(step)] = TracedNode(
                node.label, node.op_type, node.inputs, node.outputs, origin.source, origin.module, origin.name
            )
        return found

    def types_of_values(self) -> dict[str, str]:
        """Returns value of the main graph -> its element type, '' where it is not known."""
        return {
            name: kind
            for step in self._plan.steps
            for name, kind in zip(step.call.node.outputs, step.output_types, strict=False)
            if name
        }

    @property
    def float_types(self) -> frozenset[str]:
        """Names of the floating-point types that values of the model have."""
        steps = self._plan.all_steps()
        declared = [
            *self._declared.values(),
            *(t for step in steps for t in (*step.call.input_types, *step.output_types)),
        ]
        return frozenset(t for t in declared if t in FLOAT_TYPES)

    @property
    def literals(self) -> frozenset[float]:
        """Floating-point numbers among the attributes."""
        values = [v for step in self._plan.all_steps() for v in step.attributes.values()]
        numbers = [n for v in values for n in (v if isinstance(v, list | tuple) else [v])]
        return frozenset(n for n in numbers if isinstance(n, float))

    def run(
        self,
        feeds: Mapping[str, Array],
        *,
        constants: Mapping[str, Array] | None = None,
        observe: Callable[[Node, list[str], list[Any]], None] | None = None,
        follow: Follower | None = None,
    ) -> list[Any]:
        """Returns the outputs in order: float64 for floating-point types, the declared type for others.

        Args:
            feeds: value of each input, in any floating-point type where a floating-point type is declared; inputs
                that are also initializers may be given. Lists stand for sequences.
            constants: float64 values to use in place of entries of `self.constants`.
            observe: called with node, output names and outputs after each top-level node (`Constant` nodes first).
                The values must not be modified.
            follow: called after each node, in subgraphs too; what it returns is what the nodes after it see.

        Raises:
            UsageError: a feed or constant is missing, unknown or of a type that does not fit.
            MissingKernel: a node was reached whose operator has no kernel.
            ToolError: an operator does not accept its operands.
        """
        arguments, overrides = self._bind(feeds)
        table = self._constants(constants)
        with np.errstate(all="ignore"):
            outputs = self._plan.execute(arguments, table, overrides=overrides, observe=observe, follow=follow)
        held = [*arguments, *overrides.values(), *table.values()]
        return [_own(value, held) for value in outputs]

    def locally(
        self,
        feeds: Mapping[str, Array],
        take: Take,
        *,
        random: frozenset[str],
        budgets: Mapping[str, Budget],
        seed: int,
    ) -> Iterator[LocalStep]:
        """Yields the nodes of the main graph, each evaluated on values that a runtime computed; see `run_locally`.

        Raises:
            UsageError: a feed is missing, unknown or of a type that does not fit.
        """
        arguments, overrides = self._bind(feeds)
        table = self._constants(None)
        values = self._plan._start(arguments, table, (), overrides)
        return run_locally(self._plan, values, table, take, random=random, budgets=budgets, seed=seed)

    def _bind(self, feeds: Mapping[str, Array]) -> tuple[list[Any], dict[str, Array]]:
        unknown = [name for name in feeds if name not in self._declared]
        absent = [name for name in self.input_names if name not in feeds]
        if unknown or absent:
            raise UsageError(
                f"expected the inputs {list(self.input_names)}; "
                f"missing: {absent or 'none'}, unknown: {unknown or 'none'}"
            )
        arguments = [_fit(name, feeds[name], self._declared[name]) for name in self.input_names]
        overrides = {
            name: _fit(name, feeds[name], self._declared[name]) for name in self._plan.optional if name in feeds
        }
        return arguments, overrides

    def _constants(self, given: Mapping[str, Array] | None) -> Mapping[str, Array]:
        if self._table is None:
            self._table = {key: constant_value(value) for key, value in self._tensors.items()}
        if not given:
            return self._table
        table = dict(self._table)
        for key, value in given.items():
            if key not in self.constants:
                raise UsageError(f"the model has no floating-point constant '{key}'")
            if np.shape(value) != table[key].shape:
                raise UsageError(f"constant '{key}' has shape {table[key].shape}, the value given {np.shape(value)}")
            table[key] = np.asarray(value, dtype=np.float64)
        return table


def _fit(name: str, value: Any, declared: str) -> Any:
    """Returns a feed as it is held, refusing one that could only be converted by changing its value."""
    if value is None or isinstance(value, list | tuple):
        return value if value is None else [_fit(name, item, declared) for item in value]
    array = promote(np.asarray(value))
    if not declared:
        return array
    held = held_dtype(declared)
    if array.dtype == held or (is_float(declared) and array.dtype.kind in "biuf"):
        return array.astype(held, copy=False)
    if held == np.dtype(object) or np.can_cast(array.dtype, held, "safe"):
        return array.astype(held)
    raise UsageError(f"input '{name}' is declared {declared}, got {np.asarray(value).dtype}{list(array.shape)}")


def _own(value: Any, held: list[Any]) -> Any:
    """Returns an output that shares no memory with constants, feeds or other outputs; adds it to `held`."""
    if isinstance(value, list):
        return [_own(item, held) for item in value]
    if isinstance(value, np.ndarray):
        # A view may be one of anything; only an array with memory of its own, seen for the first time, is safe.
        result = np.array(value) if value.base is not None or any(value is h for h in held) else value
        held.append(result)
        return result
    return value
