"""Turns graphs into plans: resolves names to slots, operators to kernels, types to outputs, constants to keys."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto

from trueport.adapters.float64.onnx import functions
from trueport.adapters.float64.onnx.attributes import (
    Constant,
    constant_of_node,
    parse_attribute,
    read_sparse,
    read_tensor,
    resolve_references,
)
from trueport.adapters.float64.onnx.dtypes import LIMITS, NAMES, Array, elem_type, is_float, promote
from trueport.adapters.float64.onnx.plan import Plan, Step
from trueport.adapters.float64.onnx.registry import EARLY, Call, Kernel, MissingKernel, Node, find_kernel
from trueport.adapters.float64.onnx.typing_rules import find_schema, output_types
from trueport.core.errors import UsageError

# Before operator set 7, broadcasting and the meaning of several attributes were different.
MIN_OPSET = 7
MAX_DEPTH = 64
_DEFINED = ("", "ai.onnx.preview")
"""Domains of which the onnx package knows operators by their definitions."""


@dataclass
class Shared:
    """What all plans of a model have in common.

    Attributes:
        functions: local functions by (domain, name, overload).
        constants: floating-point constants of the model, in file order.
        tensors: every constant by key, in its declared type, those of operator definitions included.
        missing: operators without a kernel.
    """

    base_dir: str | None
    functions: Mapping[tuple[str, str, str], FunctionProto]
    constants: dict[str, Constant] = field(default_factory=dict)
    tensors: dict[str, Array] = field(default_factory=dict)
    missing: set[str] = field(default_factory=set)

    @classmethod
    def of_model(cls, model: ModelProto, base_dir: str | None) -> Shared:
        """Returns the shared part for a model."""
        local = {(_domain(f.domain), f.name, getattr(f, "overload", "")): f for f in model.functions}
        return cls(base_dir, local)

    def add(self, key: str, dtype: str, value: Array, *, visible: bool) -> str:
        """Returns the key under which a constant is kept: `key`, with a number added where it is taken by another."""
        unique, number = key, 1
        while unique in self.tensors and not _identical(self.tensors[unique], value):
            number += 1
            unique = f"{key}#{number}"
        if unique not in self.tensors:
            self.tensors[unique] = value
            if visible and is_float(dtype):
                self.constants[unique] = Constant(unique, dtype, value)
        return unique


@dataclass(frozen=True)
class Surroundings:
    """What a graph inherits from where it stands.

    Attributes:
        opsets: operator-set version by domain.
        bound: attributes of the enclosing function.
        prefix: of the keys of constants.
        rounds: outputs of nodes are subject to the range of their declared type; False inside the definition of an
            operator, which counts as one operation.
        visible: constants belong to the model rather than to the definition of an operator.
    """

    opsets: Mapping[str, int]
    bound: Mapping[str, AttributeProto] = field(default_factory=dict)
    prefix: str = ""
    rounds: bool = True
    visible: bool = True
    depth: int = 0

    def inside(self, prefix: str) -> Surroundings:
        """Returns the surroundings of a subgraph."""
        return Surroundings(self.opsets, self.bound, prefix, self.rounds, self.visible, self.depth + 1)


def _domain(domain: str) -> str:
    return "" if domain == "ai.onnx" else domain


def _unchanged(schema: Any | None, op_type: str) -> bool:
    """Returns whether an operator of an operator set before `MIN_OPSET` still means the same in that one."""
    later = find_schema(op_type, "", MIN_OPSET)
    return schema is not None and later is not None and schema.since_version == later.since_version


def _identical(left: Array, right: Array) -> bool:
    return left.dtype == right.dtype and left.shape == right.shape and left.tobytes() == right.tobytes()


class Builder:
    """Builds one plan; a subgraph gets a builder of its own, with this one as `outer`."""

    def __init__(self, shared: Shared, surroundings: Surroundings, name: str, outer: Builder | None = None) -> None:
        if surroundings.depth > MAX_DEPTH:
            raise UsageError(f"graphs and functions are nested more than {MAX_DEPTH} deep at '{name}'")
        self.shared = shared
        self.surroundings = surroundings
        self.name = name
        self.outer = outer
        self.slots: dict[str, int] = {"": 0}
        self.types: dict[str, str] = {"": ""}
        self.size = 2
        self.declared: dict[str, str] = {}
        self.constants: list[tuple[int, str]] = []
        self.literals: list[tuple[Node, int]] = []
        self.captures: list[tuple[int, int]] = []
        self.steps: list[Step] = []

    # ---- whole graphs

    def build_graph(self, graph: GraphProto, input_types: Sequence[str] | None) -> Plan:
        """Returns the plan of a graph whose inputs have the given types, or those that it declares where None."""
        self.declared = {info.name: elem_type(info.type) for info in (*graph.value_info, *graph.output)}
        initialized = self._read_initializers(graph)
        inputs, optional = [], {}
        for index, info in enumerate(graph.input):
            if info.name in initialized and input_types is None:
                optional[info.name] = self.slots[info.name]
                continue
            given = input_types[index] if input_types is not None and index < len(input_types) else ""
            inputs.append(self._define(info.name, given or elem_type(info.type)))
        self._add_nodes(graph.node)
        return self._finish(inputs, [info.name for info in graph.output], optional)

    def build_function(self, function: FunctionProto, input_types: Sequence[str]) -> Plan:
        """Returns the plan of a function called with inputs of the given types."""
        self.declared = {info.name: elem_type(info.type) for info in getattr(function, "value_info", ())}
        types = [*input_types, *[""] * len(function.input)]
        inputs = [self._define(name, dtype) for name, dtype in zip(function.input, types, strict=False)]
        self._add_nodes(function.node)
        return self._finish(inputs, list(function.output), {})

    def _read_initializers(self, graph: GraphProto) -> set[str]:
        base_dir = self.shared.base_dir
        for tensor in graph.initializer:
            self._add_constant(tensor.name, NAMES.get(tensor.data_type, ""), read_tensor(tensor, base_dir))
        for sparse in graph.sparse_initializer:
            dtype = NAMES.get(sparse.values.data_type, "")
            self._add_constant(sparse.values.name, dtype, read_sparse(sparse, base_dir))
        return {t.name for t in graph.initializer} | {s.values.name for s in graph.sparse_initializer}

    def _finish(self, inputs: list[int], outputs: list[str], optional: dict[str, int]) -> Plan:
        slots = [self._resolve(name, f"output of graph '{self.name}'") for name in outputs]
        self._mark_last_uses(set(slots))
        types = tuple(self.types[name] or self.declared.get(name, "") for name in outputs)
        return Plan(
            self.name, self.size, tuple(inputs), optional, tuple(self.constants), tuple(self.literals),
            tuple(self.captures), tuple(self.steps), tuple(slots), types,
        )  # fmt: skip

    def _mark_last_uses(self, kept: set[int]) -> None:
        seen = kept | {0}
        for step in reversed(self.steps):
            used = set(step.inputs) | set(step.outputs)
            for body in (step.bodies or {}).values():
                used.update(outer for outer, _ in body.captures)
            step.frees = tuple(sorted(used - seen))
            seen |= used

    # ---- names

    def _define(self, name: str, dtype: str) -> int:
        slot = self.size
        self.size += 1
        self.slots[name] = slot
        self.types[name] = dtype
        return slot

    def _resolve(self, name: str, where: str) -> int:
        slot = self._find(name)
        if slot is None:
            raise UsageError(f"{where} refers to '{name}', which nothing before it defines")
        return slot

    def _find(self, name: str) -> int | None:
        """Returns the slot of a name; a name of an enclosing graph is captured on first use."""
        if name in self.slots:
            return self.slots[name]
        outer_slot = self.outer._find(name) if self.outer is not None else None
        if self.outer is None or outer_slot is None:
            return None
        slot = self._define(name, self.outer.types[name])
        self.captures.append((outer_slot, slot))
        return slot

    def _add_constant(self, name: str, dtype: str, value: Array) -> int:
        prefix = self.surroundings.prefix
        key = self.shared.add(f"{prefix}{name}", dtype, value, visible=self.surroundings.visible)
        slot = self._define(name, dtype)
        self.constants.append((slot, key))
        return slot

    # ---- nodes

    def _add_nodes(self, nodes: Iterable[NodeProto]) -> None:
        for node in nodes:
            attributes = resolve_references(node.attribute, self.surroundings.bound)
            if node.op_type == "Constant" and _domain(node.domain) == "":
                dtype, value = constant_of_node(attributes, self.shared.base_dir)
                slot = self._add_constant(node.output[0], dtype, value)
                self.literals.append((self._describe(node, attributes), slot))
            else:
                self._add_node(node, attributes)

    def _describe(self, node: NodeProto, attributes: Mapping[str, AttributeProto]) -> Node:
        parsed = {name: parse_attribute(attribute, self.shared.base_dir) for name, attribute in attributes.items()}
        metadata = {entry.key: entry.value for entry in getattr(node, "metadata_props", ())}
        domain = _domain(node.domain)
        return Node(node.name, node.op_type, domain, tuple(node.input), tuple(node.output), parsed, metadata)

    def _add_node(self, proto: NodeProto, attributes: dict[str, AttributeProto]) -> None:
        node = self._describe(proto, attributes)
        where = f"node '{node.label}' ({node.operator})"
        slots = tuple(self._resolve(name, where) for name in node.inputs)
        types = tuple(self.types[name] for name in node.inputs)
        local = self.shared.functions.get((node.domain, node.op_type, getattr(proto, "overload", "")))
        opset = self.surroundings.opsets.get(node.domain, 1)
        schema = None if local is not None else find_schema(node.op_type, node.domain, opset)
        merged = functions.with_defaults(schema, attributes) if schema is not None else attributes
        bodies = self._build_bodies(node, attributes, types)
        kernel = find_kernel(node.domain, node.op_type) if local is None else None
        if node.domain == "" and opset < MIN_OPSET and not _unchanged(schema, node.op_type):
            kernel = find_kernel(EARLY, node.op_type) if local is None else None
        if kernel is None or (kernel.control and not bodies):
            kernel, bodies = self._expand(proto, node, local, schema, merged, types)
            for body in (bodies or {}).values():
                slots += (0,) * (len(body.inputs) - len(slots))
        self._add_step(node, opset, kernel, bodies, slots, types, merged, schema)

    def _add_step(
        self, node: Node, opset: int, kernel: Kernel, bodies: dict[str, Plan] | None, slots: tuple[int, ...],
        types: tuple[str, ...], merged: Mapping[str, AttributeProto], schema: Any | None,
    ) -> None:  # fmt: skip
        inferred = self._output_types(node, bodies, types, merged, schema)
        defaults = {n: parse_attribute(a, None) for n, a in merged.items() if n not in node.attributes}
        call = Call(node, opset, {**defaults, **node.attributes}, types, tuple(inferred))
        if kernel.supports is not None and not kernel.supports(call):
            kernel, bodies = self._missing(node), None
        outputs = tuple(
            self._define(name, dtype) if name else 1 for name, dtype in zip(node.outputs, inferred, strict=True)
        )
        limits: tuple[tuple[int, tuple[float, float]], ...] = ()
        if self.surroundings.rounds and not kernel.selects:
            limits = tuple((i, LIMITS[t]) for i, t in enumerate(inferred) if t in LIMITS and node.outputs[i])
        self.steps.append(Step(call, kernel.function, slots, outputs, limits, (), bodies, kernel.selects))

    def _output_types(
        self, node: Node, bodies: dict[str, Plan] | None, types: tuple[str, ...],
        merged: Mapping[str, AttributeProto], schema: Any | None,
    ) -> list[str]:  # fmt: skip
        count = len(node.outputs)
        if bodies:
            branches = [body.output_types for body in bodies.values()]
            first = [next((t for t in types_ if t), "") for types_ in zip(*branches, strict=False)]
            inferred = list(first[1:] if node.op_type == "Loop" else first)
            inferred = (inferred + [""] * count)[:count]
        else:
            inferred = output_types(node.op_type, schema, types, merged, count)
        return [t or self.declared.get(name, "") for t, name in zip(inferred, node.outputs, strict=True)]

    def _build_bodies(
        self, node: Node, attributes: Mapping[str, AttributeProto], types: tuple[str, ...]
    ) -> dict[str, Plan] | None:
        graphs = {n: a.g for n, a in attributes.items() if a.type == AttributeProto.GRAPH}
        if not graphs:
            return None
        scanned = types if self.surroundings.opsets.get(node.domain, 1) >= 9 else types[1:]  # behind the lengths
        formal = {"Loop": ("int64", "bool", *types[2:]), "Scan": scanned, "SequenceMap": types}.get(node.op_type)
        bodies = {}
        for name, graph in graphs.items():
            inside = self.surroundings.inside(f"{self.surroundings.prefix}{graph.name or node.label}:")
            given = formal if formal is not None else [""] * len(graph.input)
            bodies[name] = Builder(self.shared, inside, graph.name or node.label, self).build_graph(graph, given)
        return bodies

    # ---- operators that are graphs themselves

    def _expand(
        self, proto: NodeProto, node: Node, local: FunctionProto | None, schema: Any | None,
        merged: Mapping[str, AttributeProto], types: tuple[str, ...],
    ) -> tuple[Kernel, dict[str, Plan] | None]:  # fmt: skip
        """Returns a kernel that runs the function behind a node, or one that says that there is none."""
        function = local
        if function is None and node.domain in _DEFINED and schema is not None:
            opset = self.surroundings.opsets.get(node.domain, 1)
            known = opset >= MIN_OPSET or node.domain != ""
            function = functions.definition(schema, opset, proto, types) if known else None
        if function is None:
            return self._missing(node), None
        bound = merged if local is None else {**{a.name: a for a in function.attribute_proto}, **merged}
        inherited = self.surroundings
        own = {_domain(entry.domain): entry.version for entry in function.opset_import}
        surroundings = Surroundings(
            {**inherited.opsets, **own}, bound,
            f"{inherited.prefix}{function.name}:", inherited.rounds and local is not None,
            inherited.visible and local is not None, inherited.depth + 1,
        )  # fmt: skip
        before = set(self.shared.missing)
        # A graph among the attributes of an operator becomes part of its definition, and may see what is around it.
        outer = self if local is None else None
        body = Builder(self.shared, surroundings, function.name, outer).build_function(function, types)
        if local is None and self.shared.missing != before:
            # An operator whose definition uses a missing one is itself the missing one for the user.
            self.shared.missing.clear()
            self.shared.missing.update(before)
            return self._missing(node), None
        return Kernel(functions.call_body, selects=local is not None, control=True), {"body": body}

    def _missing(self, node: Node) -> Kernel:
        self.shared.missing.add(node.operator)

        def raise_missing(call: Call, *arguments: Any) -> Any:
            del call, arguments
            raise MissingKernel(node.operator, node.label)

        return Kernel(raise_missing, selects=True)


def opsets_of(imports: Iterable[onnx.OperatorSetIdProto]) -> dict[str, int]:
    """Returns operator-set versions by domain, with the default domain under the empty name."""
    return {_domain(entry.domain): entry.version for entry in imports}


def constant_value(value: Array) -> Array:
    """Returns a constant as it is held during evaluation, writable so that PyTorch can share its memory."""
    held = promote(value)
    return held if held.flags.writeable else np.array(held)
