"""Which node of one graph is which of another: by output names first, then by what it computes from what."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

import onnx

from trueport.onnxgraph.nesting import Body, bodies
from trueport.onnxgraph.node_text import attribute_key
from trueport.onnxgraph.tensor_values import content_key


@dataclass(eq=False)
class Scope:
    """A graph or function with what can be looked up in it.

    Attributes:
        key: '' for the main graph; the same for the bodies that correspond in two models.
        nodes: all but those that hold a constant.
        constants: name -> tensor, of initializers and `Constant` nodes alike.
        keys: name -> content of the constant.
        types: name -> declared type of values inside.
        fed: names of inputs.
        computed: names of outputs of `nodes`.
        function: where it is one.
        parent: the scope around it.
        renamed: name of the second model -> name of the first, filled while pairing.
    """

    key: str
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: dict[str, onnx.TensorProto] = field(default_factory=dict)
    keys: dict[str, bytes] = field(default_factory=dict)
    types: dict[str, onnx.TypeProto] = field(default_factory=dict)
    fed: frozenset[str] = frozenset()
    computed: frozenset[str] = frozenset()
    function: onnx.FunctionProto | None = None
    parent: Scope | None = None
    renamed: dict[str, str] = field(default_factory=dict)

    def constant(self, name: str) -> bytes | None:
        """Returns the content of a constant seen from here, None where the name is fed, computed or unknown."""
        scope = self._holder(name)
        return None if scope is None or name in scope.fed or name in scope.computed else scope.keys[name]

    def varies(self, name: str) -> bool:
        """Returns whether the name seen from here is fed or computed."""
        scope = self._holder(name)
        return scope is not None and (name in scope.fed or name in scope.computed)

    def _holder(self, name: str) -> Scope | None:
        scope: Scope | None = self
        while scope is not None and not (name in scope.fed or name in scope.computed or name in scope.keys):
            scope = scope.parent
        return scope

    def original(self, name: str) -> str:
        """Returns the first model's name of a value seen from here."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.renamed:
                return scope.renamed[name]
            scope = scope.parent
        return name


@dataclass(frozen=True)
class Paired:
    """The nodes of two graphs.

    Attributes:
        removed: of the first only.
        added: of the second only.
        altered: the same outputs, operator and inputs, other attributes.
        shared: names of values that nodes of both compute.
        unchanged: those with the same nodes all the way from the inputs.
    """

    removed: list[onnx.NodeProto]
    added: list[onnx.NodeProto]
    altered: list[tuple[onnx.NodeProto, onnx.NodeProto]]
    shared: tuple[str, ...]
    unchanged: tuple[str, ...]


def scopes(model: onnx.ModelProto) -> dict[str, Scope]:
    """Returns the bodies of a model by a key that does not hang on their place in the file.

    Raises:
        UsageError: graphs are nested too deeply.
    """
    made: dict[int, Scope] = {}
    found: dict[str, Scope] = {}
    counts: Counter[str] = Counter()
    all_bodies = list(bodies(model))  # keeps them alive, so that no two have one id
    labels: dict[int, str] = {}
    for body in all_bodies:
        parent = made[id(body.parent)] if body.parent is not None else None
        for node in body.nodes:
            for attribute in node.attribute:
                graphs = [attribute.g] if attribute.HasField("g") else attribute.graphs
                labels |= {id(graph): f"{attribute.name} of {_called(node)}" for graph in graphs}
        key = "" if body.graph is not None and parent is None else labels.get(id(body.graph), body.name)
        key = f"{parent.key} > {key}" if parent is not None and parent.key else key
        counts[key] += 1
        key = key if counts[key] == 1 else f"{key} ({counts[key]})"
        made[id(body)] = found[key] = _scope(key, body, parent)
    return found


def _called(node: onnx.NodeProto) -> str:
    """By its output rather than by its name, which tools give to nodes that have none."""
    label = next((output for output in node.output if output), node.name)
    return f"{node.op_type[:60]} '{label[:80]}'"


def _scope(key: str, body: Body, parent: Scope | None) -> Scope:
    scope = Scope(key, function=body.function, parent=parent)
    source = body.graph if body.graph is not None else body.function
    assert source is not None
    scope.types = {v.name: v.type for v in source.value_info}
    if body.graph is not None:
        scope.constants = {t.name: t for t in body.graph.initializer}
        scope.fed = frozenset(v.name for v in body.graph.input)
    elif body.function is not None:
        scope.fed = frozenset(body.function.input)
    for node in body.nodes:
        tensor = _held(node)
        if tensor is None:
            scope.nodes.append(node)
        else:
            scope.constants[node.output[0]] = tensor
    scope.computed = frozenset(name for node in scope.nodes for name in node.output if name)
    scope.keys = {name: content_key(tensor) for name, tensor in scope.constants.items()}
    return scope


def _held(node: onnx.NodeProto) -> onnx.TensorProto | None:
    """Returns the tensor of a `Constant`, also where it is written as plain numbers."""
    if node.op_type != "Constant" or node.domain not in ("", "ai.onnx") or len(node.output) != 1:
        return None
    for a in node.attribute:
        if a.ref_attr_name:
            return None
        if a.name == "value" and a.HasField("t"):
            return a.t
        for name, kind, values, dims in (
            ("value_int", onnx.TensorProto.INT64, [a.i], []),
            ("value_ints", onnx.TensorProto.INT64, a.ints, [len(a.ints)]),
            ("value_float", onnx.TensorProto.FLOAT, [a.f], []),
            ("value_floats", onnx.TensorProto.FLOAT, a.floats, [len(a.floats)]),
        ):
            if a.name == name:
                return onnx.helper.make_tensor(node.output[0], kind, dims, values)
    return None


def pair(old: Scope, new: Scope, doubtful: Callable[[onnx.NodeProto], bool]) -> Paired:
    """Returns which nodes are in one of two corresponding bodies only; fills `new.renamed`.

    Args:
        old: a body of the first model.
        new: the same of the second.
        doubtful: whether the same node may mean something else in the second model, as calls of functions may.
    """
    by_outputs: dict[Hashable, deque[int]] = defaultdict(deque)
    by_meaning: dict[Hashable, deque[int]] = defaultdict(deque)
    meanings = [_meaning(node, old, old, new) for node in old.nodes]
    names, produced = old.computed, new.computed
    for index, node in enumerate(old.nodes):
        by_outputs[tuple(node.output)].append(index)
        if not produced & set(node.output):
            by_meaning[meanings[index]].append(index)
    taken: dict[int, int] = {}
    altered: list[tuple[onnx.NodeProto, onnx.NodeProto]] = []
    free: list[int] = []
    for number, node in enumerate(new.nodes):
        meaning = _meaning(node, new, old, new)
        place = _first(by_outputs[tuple(node.output)], taken)
        if place is not None and meanings[place] == meaning:
            taken[place] = number
        elif place is not None and meanings[place][:-1] == meaning[:-1]:
            taken[place] = number
            altered.append((old.nodes[place], node))
        elif names.isdisjoint(node.output) and (place := _first(by_meaning[meaning], taken)) is not None:
            taken[place] = number
            new.renamed.update(zip(node.output, old.nodes[place].output, strict=True))
        else:
            free.append(number)
    shared = tuple(dict.fromkeys(n for node in old.nodes for n in node.output if n in produced))
    removed = [node for index, node in enumerate(old.nodes) if index not in taken]
    return Paired(
        removed, [new.nodes[n] for n in free], altered, shared, _unchanged(old, new, removed, altered, shared, doubtful)
    )


def _first(places: deque[int], taken: dict[int, int]) -> int | None:
    while places and places[0] in taken:
        places.popleft()
    return places[0] if places else None


def _meaning(node: onnx.NodeProto, scope: Scope, old: Scope, new: Scope) -> tuple[Hashable, ...]:
    """Returns operator, number of outputs, inputs and, last, attributes."""
    inputs = tuple(_input(name, scope, old, new) for name in node.input)
    attributes = tuple(sorted(attribute_key(a) for a in node.attribute))
    domain = "" if node.domain == "ai.onnx" else node.domain
    return (domain, node.op_type, len(node.output), inputs, attributes)


def _input(name: str, scope: Scope, old: Scope, new: Scope) -> Hashable:
    """A constant is its content, unless the other model has something else by its name, which is told for itself."""
    content = scope.constant(name)
    if content is None:
        return scope.original(name) if scope is new else name
    across = old if scope is new else new
    return name if across.varies(name) or across.constant(name) not in (None, content) else content


def _unchanged(
    old: Scope,
    new: Scope,
    removed: list[onnx.NodeProto],
    altered: list[tuple[onnx.NodeProto, onnx.NodeProto]],
    shared: tuple[str, ...],
    doubtful: Callable[[onnx.NodeProto], bool],
) -> tuple[str, ...]:
    """A node that holds a graph counts as changed here: what is in the graph is told elsewhere."""
    tainted = {name for node in removed for name in node.output} | {n for one, _ in altered for n in one.output}
    tainted |= {name for name, key in old.keys.items() if new.keys.get(name, key) != key or name in new.computed}
    tainted |= {name for name in old.fed if new.constant(name) is not None}
    readers: dict[str, list[onnx.NodeProto]] = defaultdict(list)
    for node in old.nodes:
        if doubtful(node) or any(a.HasField("g") or a.graphs for a in node.attribute):
            tainted.update(node.output)
        for name in node.input:
            readers[name].append(node)
    waiting = list(tainted)
    while waiting:
        for node in readers.pop(waiting.pop(), ()):
            waiting += set(node.output) - tainted
            tainted.update(node.output)
    return tuple(name for name in shared if name not in tainted)
