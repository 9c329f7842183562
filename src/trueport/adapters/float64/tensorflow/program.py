"""A TensorFlow graph as a `Program`: executed node by node, control flow and functions followed into their bodies."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray
from tensorflow.python.eager import context
from tensorflow.python.framework.function_def_to_graph import function_def_to_graph

from trueport.adapters.float64.replay.operation import Follower
from trueport.adapters.float64.tensorflow.operations import GraphOperation, as_array, type_name, widened
from trueport.core.errors import ToolError, UsageError
from trueport.core.trace import TracedNode

Array = NDArray[Any]
Values = dict[str, Any]

CALLS = {"PartitionedCall": "f", "StatefulPartitionedCall": "f"}
BRANCHES = frozenset({"If", "StatelessIf", "Case", "StatelessCase"})
LOOPS = frozenset({"While", "StatelessWhile"})
RANDOM = frozenset(
    {"RandomUniform", "RandomStandardNormal", "RandomUniformInt", "TruncatedNormal", "RandomShuffle", "Multinomial",
     "ParameterizedTruncatedNormal", "RandomGamma", "RandomPoissonV2", "StatefulStandardNormalV2", "StatefulUniform",
     "StatefulUniformInt", "StatefulTruncatedNormal", "StatefulRandomBinomial"}
)  # fmt: skip
_NOTHING = frozenset({"NoOp", "Assert", "PrintV2", "Print", "Timestamp"})
MOST_TURNS = 1_000_000
"""After so many turns a loop is taken for endless."""


@dataclass(frozen=True)
class GraphConstant:
    """A weight or a constant: its value, and the type that it really has."""

    value: Array
    dtype: str


@dataclass
class Body:
    """A graph ready to run: its nodes in order, and the tensors that it takes and gives."""

    nodes: list[GraphOperation]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    uses: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, graph: Any, inputs: Sequence[str], outputs: Sequence[str]) -> Body:
        """Returns the body of a graph with the nodes that its outputs need, and those that have effects."""
        needed = _needed(graph, outputs)
        nodes = [GraphOperation(node) for node in graph.get_operations() if node.name in needed]
        return cls(nodes, tuple(inputs), tuple(outputs), _uses(nodes, outputs))


def _needed(graph: Any, outputs: Sequence[str]) -> set[str]:
    """Returns the nodes that the outputs depend on, through control inputs too."""
    needed: set[str] = set()
    pending = [graph.get_tensor_by_name(name).op for name in outputs]
    pending += [node for node in graph.get_operations() if node.type == "AssignVariableOp"]
    while pending:
        node = pending.pop()
        if node.name in needed:
            continue
        needed.add(node.name)
        pending += [tensor.op for tensor in node.inputs] + list(node.control_inputs)
    return needed


def _uses(nodes: Sequence[GraphOperation], outputs: Sequence[str]) -> dict[str, int]:
    """Returns for each tensor the place of the last node that reads it, so that it can be freed there."""
    last = {name: place for place, node in enumerate(nodes) for name in node.inputs}
    last.update(dict.fromkeys(outputs, len(nodes)))
    return last


class Nested:
    """A node that runs functions; an `Operation` whose body is followed itself."""

    nested = True
    coarse = False

    def __init__(self, node: GraphOperation) -> None:
        self.operator = node.operator
        self.label = node.label
        self.source = node.source
        self.attributes: Mapping[str, Any] = {}
        self.output_types = node.output_types
        self.node = node

    def apply(self, arguments: Sequence[Any]) -> tuple[Any, ...]:
        """Refuses: what runs functions is never applied alone."""
        del arguments
        raise ToolError(f"node '{self.label}' ({self.operator}) runs functions and is not applied alone")


class TensorFlowProgram:
    """A graph with its functions and the variables that it reads.

    Args:
        graph: a `FuncGraph`, or a graph with functions in its library.
        inputs: (name for users, tensor of the graph) of what is fed, in order.
        outputs: (name for users, tensor of the graph), in order.
        captures: tensor of the graph -> what the enclosing program holds there (a variable's handle or a constant).
        variables: name -> variable; those whose handles are among the captures.
    """

    def __init__(
        self,
        graph: Any,
        inputs: Sequence[tuple[str, str]],
        outputs: Sequence[tuple[str, str]],
        captures: Mapping[str, Any] | None = None,
        variables: Sequence[Any] = (),
    ) -> None:
        self._graphs = [graph]
        self.input_names = tuple(name for name, _ in inputs)
        self.output_names = tuple(name for name, _ in outputs)
        self._fed = tuple(tensor for _, tensor in inputs)
        self._given = tuple(tensor for _, tensor in outputs)
        self._dtypes = {name: graph.get_tensor_by_name(name).dtype for name in (*self._fed, *self._given)}
        self.output_types = tuple(type_name(self._dtypes[name]) for name in self._given)
        self._handles = {_handle_key(variable.handle): variable for variable in variables}
        # Variables without a name of their own are all called "Variable:0": the name alone does not tell them apart.
        self._variable_keys = {
            key: f"variable {number} {variable.name}" for number, (key, variable) in enumerate(self._handles.items())
        }
        self._captures = dict(captures or {})
        definitions = graph.as_graph_def().library.function
        self._definitions = {definition.signature.name: definition for definition in definitions}
        self._bodies: dict[str, Body] = {}
        self._body = Body.of(graph, self._fed, self._given)
        self._top = frozenset(id(node) for node in self._body.nodes)
        everything = [node for body in self._all_bodies() for node in body.nodes]
        self.operators = frozenset(node.operator for node in everything)
        self.random = tuple(sorted({node.operator for node in everything if node.operator in RANDOM}))
        self.coarse = tuple(sorted({node.operator for node in everything if _is_plain(node) and node.coarse}))
        self.missing: tuple[str, ...] = ()
        self.float_types = frozenset(
            t for node in everything for t in node.output_types if t.startswith(("float", "bfloat"))
        )
        self.constants: Mapping[str, GraphConstant] = dict(self._read_constants(everything))

    # ------------------------------------------------------------------ what it holds

    def _all_bodies(self) -> list[Body]:
        bodies, pending, seen = [], [self._body], set()
        while pending:
            body = pending.pop()
            bodies.append(body)
            for node in body.nodes:
                for name in _functions_of(node):
                    if name not in seen:
                        seen.add(name)
                        pending.append(self._function(name))
        return bodies

    def _read_constants(self, nodes: Sequence[GraphOperation]) -> Any:
        for key, variable in self._handles.items():
            value = variable.numpy()
            if value.dtype.kind in "fc" or value.dtype.name == "bfloat16":
                yield self._variable_keys[key], GraphConstant(widened(value), str(value.dtype.name))
        for tensor, value in self._captures.items():
            if isinstance(value, np.ndarray) and (value.dtype.kind in "fc" or value.dtype.name == "bfloat16"):
                yield tensor, GraphConstant(widened(value), str(value.dtype.name))
        for node in nodes:
            if node.operator == "Const" and node.output_types[0].startswith(("float", "bfloat")):
                yield node.label, GraphConstant(widened(_constant(node)), node.output_types[0])

    def _function(self, name: str) -> Body:
        if name not in self._bodies:
            definition = self._definitions.get(name)
            if definition is None:
                raise ToolError(f"the graph calls the function '{name}', which it does not define")
            self._define_all()
            graph = function_def_to_graph(definition)
            self._graphs.append(graph)  # its nodes live no longer than it does
            self._bodies[name] = Body.of(graph, [t.name for t in graph.inputs], [t.name for t in graph.outputs])
        return self._bodies[name]

    def _define_all(self) -> None:
        """Makes the functions known to TensorFlow, so that the graph of one that calls others can be built."""
        known = context.context()
        for name, definition in self._definitions.items():
            if not known.has_function(name):
                known.add_function_def(definition)

    @property
    def output_values(self) -> tuple[str, ...]:
        """The graph's tensors that are its outputs."""
        return self._given

    def traced(self, operation: Any) -> TracedNode | None:
        """Returns what is known of a node of the graph itself; None for one in a function."""
        node = operation.node if isinstance(operation, Nested) else operation
        if id(node) not in self._top:
            return None
        return TracedNode(node.label, node.operator, node.inputs, node.outputs, node.source)

    # ------------------------------------------------------------------ running

    def run(
        self,
        feeds: Mapping[str, Array],
        *,
        constants: Mapping[str, Array] | None = None,
        follow: Follower | None = None,
    ) -> list[Any]:
        """Returns the outputs: float64 for floating-point types, complex128 for complex ones, own types for others.

        Raises:
            UsageError: a feed is missing or unknown.
            ToolError: an operator does not accept its operands.
        """
        if set(feeds) != set(self.input_names):
            raise UsageError(f"expected the inputs {list(self.input_names)}, got {list(feeds)}")
        run = _Run(self, constants or {}, follow)
        arguments = [widened(np.asarray(feeds[name])) for name in self.input_names]
        return run.body(self._body, arguments)


class _Run:
    """One run of a program: the state of its variables, and who follows it."""

    def __init__(self, program: TensorFlowProgram, constants: Mapping[str, Array], follow: Follower | None) -> None:
        self._program = program
        self._constants = constants
        self._follow = follow
        self._state: dict[Any, Array] = {}

    def body(self, body: Body, arguments: Sequence[Any]) -> list[Any]:
        """Returns the outputs of a body."""
        values: Values = dict(zip(body.inputs, arguments, strict=True))
        for place, node in enumerate(body.nodes):
            if node.outputs and all(name in values for name in node.outputs):
                continue
            results = self._node(node, [values[name] for name in node.inputs])
            values.update(zip(node.outputs, results, strict=False))
            for name in node.inputs:
                if body.uses.get(name) == place:
                    values.pop(name, None)
        return [values[name] for name in body.outputs]

    def _node(self, node: GraphOperation, arguments: list[Any]) -> Sequence[Any]:
        operator = node.operator
        if operator in _NOTHING:
            return ()
        special = _SPECIAL.get(operator)
        if special is not None:
            return special(self, node, arguments)
        if operator in CALLS or operator in BRANCHES or operator in LOOPS:
            results = self._functions(node, arguments)
            return self._told(Nested(node), arguments, results)
        return self._told(node, arguments, node.apply(arguments))

    def _told(self, operation: Any, arguments: list[Any], results: Sequence[Any]) -> Sequence[Any]:
        return results if self._follow is None else self._follow(operation, arguments, list(results))

    def _functions(self, node: GraphOperation, arguments: list[Any]) -> list[Any]:
        attribute = node.node.get_attr
        if node.operator in CALLS:
            return self._call(attribute("f").name, arguments)
        if node.operator in LOOPS:
            return self._loop(node, attribute("cond").name, attribute("body").name, arguments)
        return self._call(self._branch(node, arguments[0]), arguments[1:])

    def _branch(self, node: GraphOperation, selector: Any) -> str:
        attribute = node.node.get_attr
        if node.operator in ("If", "StatelessIf"):
            return str(attribute("then_branch" if np.asarray(selector).any() else "else_branch").name)
        branches = attribute("branches")
        index = int(selector)
        return str(branches[index if 0 <= index < len(branches) else -1].name)

    def _loop(self, node: GraphOperation, condition: str, body: str, arguments: list[Any]) -> list[Any]:
        for _ in range(MOST_TURNS):
            if not np.asarray(self._call(condition, arguments)[0]).any():
                return arguments
            arguments = self._call(body, arguments)
        raise ToolError(f"the loop '{node.label}' did not end within {MOST_TURNS} turns")

    def _call(self, name: str, arguments: Sequence[Any]) -> list[Any]:
        return self.body(self._program._function(name), arguments)

    # ------------------------------------------------------------------ constants and variables

    def constant(self, node: GraphOperation, arguments: list[Any]) -> Sequence[Any]:
        """The value of a `Const` node, or what stands in its place."""
        del arguments
        replaced = self._constants.get(node.label)
        if replaced is not None:
            return (replaced,)
        held = self._program.constants.get(node.label)
        return (held.value if held is not None else _constant(node),)

    def placeholder(self, node: GraphOperation, arguments: list[Any]) -> Sequence[Any]:
        """What the graph captured there."""
        del arguments
        name = node.outputs[0]
        if name in self._constants:
            return (self._constants[name],)
        if name not in self._program._captures:
            raise ToolError(f"placeholder '{node.label}' of the graph is not fed")
        return (widened(as_array(self._program._captures[name])),)

    def read(self, node: GraphOperation, arguments: list[Any]) -> Sequence[Any]:
        """The present value of a variable."""
        variable = self._variable(node, arguments[0])
        key = _handle_key(variable.handle)
        if key in self._state:
            return (self._state[key],)
        name = self._program._variable_keys[key]
        replaced = self._constants.get(name)
        held = self._program.constants.get(name)
        return (replaced if replaced is not None else held.value if held is not None else variable.numpy(),)

    def assign(self, node: GraphOperation, arguments: list[Any]) -> Sequence[Any]:
        """Writes a variable for the rest of this run; the variable itself stays as it is."""
        key = _handle_key(self._variable(node, arguments[0]).handle)
        value = arguments[1]
        if node.operator in ("AssignAddVariableOp", "AssignSubVariableOp"):
            before = self.read(node, arguments)[0]
            value = before + value if node.operator == "AssignAddVariableOp" else before - value
        self._state[key] = value
        return ()

    def gather(self, node: GraphOperation, arguments: list[Any]) -> Sequence[Any]:
        """Rows of a variable (`ResourceGather`)."""
        table = self.read(node, arguments)[0]
        indices = np.asarray(arguments[1])
        if indices.size and (indices.min() < 0 or indices.max() >= table.shape[0]):
            raise ToolError(f"node '{node.label}': an index is not in [0, {table.shape[0]})")
        return (np.take(table, indices, axis=0),)

    def _variable(self, node: GraphOperation, handle: Any) -> Any:
        variable = self._program._handles.get(_handle_key(handle))
        if variable is None:
            raise ToolError(f"node '{node.label}' reads a resource that is no variable of the model")
        return variable


_SPECIAL: dict[str, Callable[[_Run, GraphOperation, list[Any]], Sequence[Any]]] = {
    "Const": _Run.constant,
    "Placeholder": _Run.placeholder,
    "ReadVariableOp": _Run.read,
    "AssignVariableOp": _Run.assign,
    "AssignAddVariableOp": _Run.assign,
    "AssignSubVariableOp": _Run.assign,
    "ResourceGather": _Run.gather,
}


def _is_plain(node: GraphOperation) -> bool:
    skipped = (*_NOTHING, *CALLS, *BRANCHES, *LOOPS, *_SPECIAL)
    return node.operator not in skipped


def _functions_of(node: GraphOperation) -> list[str]:
    if node.operator in CALLS:
        return [node.node.get_attr("f").name]
    if node.operator in LOOPS:
        return [node.node.get_attr("cond").name, node.node.get_attr("body").name]
    if node.operator in ("If", "StatelessIf"):
        return [node.node.get_attr("then_branch").name, node.node.get_attr("else_branch").name]
    return [f.name for f in node.node.get_attr("branches")] if node.operator in BRANCHES else []


def _constant(node: GraphOperation) -> Array:
    return np.asarray(tf.make_ndarray(node.node.get_attr("value")))


def _handle_key(handle: Any) -> Any:
    """What identifies a variable's handle, by whichever tensor it is passed."""
    return handle.ref() if isinstance(handle, tf.Tensor) else handle
