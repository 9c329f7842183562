"""What an optimizer or a writer changed between two models: nodes by their outputs, everything else by its name.

A constant counts as the same wherever it is kept (initializer or `Constant` node) and whatever it is called, so that
lifted and shared constants are no changes; a node counts as the same when only its values were renamed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

import onnx

from trueport.onnxgraph._pairing import Scope, pair, scopes
from trueport.onnxgraph.node_text import attribute_text, node_line
from trueport.onnxgraph.tensor_values import described_tensor, largest_difference


class What(StrEnum):
    """What kind of thing differs."""

    CONSTANT = "constant"
    ATTRIBUTE = "attribute"
    TYPE = "type"
    SHAPE = "shape"
    OPSET = "opset"
    INTERFACE = "interface"


@dataclass(frozen=True)
class Difference:
    """A thing that both models have, or one of them, and that is not the same.

    Attributes:
        what: kind of thing.
        body: the graph or function where it is, '' for the main graph.
        name: of the value, of the opset's domain, or of node and attribute (`node.attribute`).
        before: as text, '' where it is not there.
        after: the same in the other model.
        distance: of constants: the largest distance of their elements, None where there is none.
    """

    what: What
    body: str
    name: str
    before: str
    after: str
    distance: float | None = None


@dataclass(frozen=True)
class ChangedNode:
    """A node that is in one of the models only.

    Attributes:
        body: the graph or function where it is, '' for the main graph.
        operator: its type.
        name: its name, which may be empty.
        inputs: names of its inputs.
        outputs: names of its outputs.
        text: `Transpose(perm=[0, 2, 1]) x -> t`.
    """

    body: str
    operator: str
    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    text: str


@dataclass(frozen=True)
class Changes:
    """What differs between two models.

    Attributes:
        removed: nodes of the first model, in its order.
        added: nodes of the second one, in its order. A node with other inputs is removed and added.
        differences: everything else.
        shared: names of values of the main graphs that nodes of both compute, in the first model's order. The same
            name need not mean the same value.
        unchanged: those of `shared` that are the same by construction: so are all nodes before them.
    """

    removed: tuple[ChangedNode, ...] = ()
    added: tuple[ChangedNode, ...] = ()
    differences: tuple[Difference, ...] = ()
    shared: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()

    @property
    def nothing(self) -> bool:
        """Whether nothing differs."""
        return not (self.removed or self.added or self.differences)

    @property
    def sequence(self) -> tuple[str, ...]:
        """The operators of the removed nodes in order, where each one reads what the one before it computed."""
        pairs = zip(self.removed, self.removed[1:], strict=False)
        chain = all(one.body == other.body and set(one.outputs) & set(other.inputs) - {""} for one, other in pairs)
        return tuple(node.operator for node in self.removed) if chain else ()


def changes(before: onnx.ModelProto, after: onnx.ModelProto) -> Changes:
    """Returns what differs, in time that grows with the size of the models only.

    Raises:
        UsageError: graphs are nested too deeply.
    """
    removed: list[ChangedNode] = []
    added: list[ChangedNode] = []
    found: list[Difference] = list(_opsets("", before.opset_import, after.opset_import))
    found += _interface(before.graph, after.graph)
    shared: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()
    olds, news = scopes(before), scopes(after)
    functions = {(f.domain, f.name) for model in (before, after) for f in model.functions}
    moved = {d.name for d in found if d.what is What.OPSET}
    for key in dict.fromkeys((*olds, *news)):
        old, new = olds.get(key) or Scope(key), news.get(key) or Scope(key)
        paired = pair(old, new, lambda node: (node.domain, node.op_type) in functions or _domain(node.domain) in moved)
        removed += [_changed(key, node) for node in paired.removed]
        added += [_changed(key, node) for node in paired.added]
        found += [d for one, other in paired.altered for d in _attributes(key, one, other)]
        found += _constants(old, new)
        found += _declared(old, new)
        if old.function is not None and new.function is not None:
            found += _opsets(key, old.function.opset_import, new.function.opset_import)
        if not key:
            shared, unchanged = paired.shared, paired.unchanged
    return Changes(tuple(removed), tuple(added), tuple(found), shared, unchanged)


def _changed(body: str, node: onnx.NodeProto) -> ChangedNode:
    return ChangedNode(body, node.op_type, node.name, tuple(node.input), tuple(node.output), node_line(node))


def _attributes(body: str, old: onnx.NodeProto, new: onnx.NodeProto) -> Iterator[Difference]:
    ones, others = ({a.name: attribute_text(a) for a in node.attribute} for node in (old, new))
    tensors = [{a.name: a.t for a in node.attribute if a.type == onnx.AttributeProto.TENSOR} for node in (old, new)]
    label = old.name or next((o for o in old.output if o), old.op_type)
    for name in sorted({*ones, *others}):
        distance = largest_difference(*(t[name] for t in tensors)) if all(name in t for t in tensors) else None
        if ones.get(name) != others.get(name) or distance:
            yield Difference(
                What.ATTRIBUTE, body, f"{label}.{name}", ones.get(name, ""), others.get(name, ""), distance
            )


def _constants(old: Scope, new: Scope) -> Iterator[Difference]:
    """Those of one name with other contents; one that is gone or new is seen at the nodes that read it."""
    for name, tensor in old.constants.items():
        other = new.constants.get(name)
        if other is not None and old.keys[name] != new.keys[name]:
            distance = largest_difference(tensor, other)
            yield Difference(What.CONSTANT, old.key, name, described_tensor(tensor), described_tensor(other), distance)


def _declared(old: Scope, new: Scope) -> Iterator[Difference]:
    """Values inside the graph that both declare, with another type, rank or known size."""
    for name, one in old.types.items():
        other = new.types.get(name)
        if other is None or one == other:
            continue
        if _other_type(one, other):
            yield Difference(What.TYPE, old.key, name, type_text(one), type_text(other))
        elif _contradict(one.tensor_type, other.tensor_type):
            yield Difference(What.SHAPE, old.key, name, type_text(one), type_text(other))


def _other_type(one: onnx.TypeProto, other: onnx.TypeProto) -> bool:
    kinds = {one.WhichOneof("value"), other.WhichOneof("value")}
    if kinds != {"tensor_type"}:
        return True
    elements = {one.tensor_type.elem_type, other.tensor_type.elem_type}
    return 0 not in elements and len(elements) > 1


def _contradict(one: onnx.TypeProto.Tensor, other: onnx.TypeProto.Tensor) -> bool:
    if not (one.HasField("shape") and other.HasField("shape")):
        return False
    sizes = [[d.dim_value if d.HasField("dim_value") else None for d in t.shape.dim] for t in (one, other)]
    return len(sizes[0]) != len(sizes[1]) or any(
        None not in (a, b) and a != b for a, b in zip(sizes[0], sizes[1], strict=True)
    )


def _interface(old: onnx.GraphProto, new: onnx.GraphProto) -> Iterator[Difference]:
    for side in ("input", "output"):
        ones, others = (
            {v.name: f"{side} {place}: {type_text(v.type)}" for place, v in enumerate(getattr(graph, side))}
            for graph in (old, new)
        )
        for name in dict.fromkeys((*ones, *others)):
            if ones.get(name) != others.get(name):
                yield Difference(What.INTERFACE, "", name, ones.get(name, ""), others.get(name, ""))


def _opsets(
    body: str, old: Iterable[onnx.OperatorSetIdProto], new: Iterable[onnx.OperatorSetIdProto]
) -> Iterator[Difference]:
    ones, others = ({_domain(o.domain): str(o.version) for o in side} for side in (old, new))
    for domain in sorted({*ones, *others}):
        if ones.get(domain) != others.get(domain):
            yield Difference(What.OPSET, body, domain, ones.get(domain, ""), others.get(domain, ""))


def _domain(name: str) -> str:
    return "" if name == "ai.onnx" else name


def type_text(declared: onnx.TypeProto) -> str:
    """Returns `float[N,3]`, `float` where the rank is unknown, or the kind of a type that is no tensor."""
    kind = declared.WhichOneof("value")
    if kind != "tensor_type":
        return (kind or "no type").removesuffix("_type")
    tensor = declared.tensor_type
    known = tensor.elem_type in onnx.TensorProto.DataType.values()
    name = onnx.TensorProto.DataType.Name(tensor.elem_type).lower() if known else f"type {tensor.elem_type}"
    if not tensor.HasField("shape"):
        return name
    sizes = [str(d.dim_value) if d.HasField("dim_value") else d.dim_param[:40] or "?" for d in tensor.shape.dim]
    return f"{name}[{','.join(sizes)}]"
