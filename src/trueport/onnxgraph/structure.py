"""Whether a graph can be followed at all: every name defined, and defined once, and no cycle.

Runtimes sort the nodes of a graph themselves, so the order in a file need not be the order of execution.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import onnx

from trueport.core.errors import UsageError
from trueport.onnxgraph.contents import check_sparse, check_tensor, elements
from trueport.onnxgraph.nesting import Body, bodies, described, sparse_tensors, subgraphs, tensors

OLDEST_IR = 3
_SHOWN = 6
_DEFAULT = ("", "ai.onnx")


def prepare(model: onnx.ModelProto, where: str) -> None:
    """Checks that a model can be followed, and puts its nodes into an order of execution where they are in none.

    Takes time in proportion to the model. Operators are not looked at: an unknown one is for those who run it.

    Args:
        model: external data need not be loaded; nodes may be moved.
        where: the model, for messages.

    Raises:
        UsageError: a version that the installed ONNX does not know, a name that is defined twice or not at all, a
            cycle, no output, an impossible shape, or a tensor whose bytes contradict its shape.
    """
    try:
        _check_versions(model)
        every = list(bodies(model))
        _check_texts(model, every)
        if not model.graph.output:
            raise UsageError("expected a graph with outputs, got one without any, so there is nothing to compare")
        _check_declared(model.graph)
        for tensor in tensors(model):
            check_tensor(tensor)
        for sparse in sparse_tensors(model):
            check_sparse(sparse)
        defined = {id(body): _definitions(body) for body in every}
        for body in every:
            _check_names(body, defined)
        captured = _captures(every, defined)
        for body in reversed(every):  # inner ones first, because sorting copies nodes
            _order(body, captured)
        _check_calls(model)
    except UsageError as error:
        raise UsageError(f"'{where}': {error}") from error


def _check_versions(model: onnx.ModelProto) -> None:
    if not OLDEST_IR <= model.ir_version <= onnx.IR_VERSION:
        raise UsageError(
            f"expected an IR version from {OLDEST_IR} to {onnx.IR_VERSION}, the newest that ONNX {onnx.__version__} "
            f"knows, got {model.ir_version}"
        )
    newest = onnx.defs.onnx_opset_version()
    versions: dict[str, int] = {}
    for entry in model.opset_import:
        domain = "" if entry.domain in _DEFAULT else entry.domain
        if versions.setdefault(domain, entry.version) != entry.version:
            raise UsageError(f"expected one version of domain '{entry.domain}', got {versions[domain]} and "
                             f"{entry.version}")  # fmt: skip
    if not versions:
        raise UsageError("expected opset_import to name the operator set, got no entry")
    if "" in versions and not 1 <= versions[""] <= newest:
        raise UsageError(
            f"expected an opset from 1 to {newest}, the newest that ONNX {onnx.__version__} knows, got {versions['']}"
        )


def _check_texts(model: onnx.ModelProto, every: Sequence[Body]) -> None:
    """Raises where a name is no UTF-8; protobuf gives such names as bytes."""
    texts: list[object] = [v.name for v in (*model.graph.input, *model.graph.output, *model.graph.value_info)]
    texts += [t.name for t in tensors(model)]
    for info in (*model.graph.input, *model.graph.output):
        texts += [d.dim_param for d in info.type.tensor_type.shape.dim]
    for body in every:
        for node in body.nodes:
            texts += [node.op_type, node.domain, node.name, *node.input, *node.output]
    wrong = next((t for t in texts if not isinstance(t, str)), None)
    if wrong is not None:
        raise UsageError(f"expected names in UTF-8, got {wrong!r:.80}; the file is damaged")


def _check_declared(graph: onnx.GraphProto) -> None:
    for value in (*graph.input, *graph.output):
        if value.type.WhichOneof("value") == "tensor_type":
            dims = [d.dim_value for d in value.type.tensor_type.shape.dim if d.HasField("dim_value")]
            # ONNX has no negative sizes, but tools write -1 for a size that they do not know.
            elements([d for d in dims if d != -1], f"'{value.name}'")


# ---------------------------------------------------------------------- names


def _definitions(body: Body) -> set[str]:
    """Returns the names that a body defines itself.

    Raises:
        UsageError: one is defined twice.
    """
    outputs = [name for node in body.nodes for name in node.output if name]
    if body.graph is None:
        assert body.function is not None
        inputs = list(body.function.input)
        initializers: list[str] = []
    else:
        inputs = [v.name for v in body.graph.input]
        initializers = [t.name for t in body.graph.initializer]
        initializers += [s.values.name for s in body.graph.sparse_initializer]
    for names, what in ((inputs, "inputs"), (initializers, "initializers")):
        _refuse_twice(Counter(names), f"{what} of {body.name}", body)
    _refuse_twice(Counter([*{*inputs, *initializers}, *outputs]), body.name, body)
    return {*inputs, *initializers, *outputs}


def _refuse_twice(counts: Counter[str], what: str, body: Body) -> None:
    twice = [name for name, count in counts.items() if count > 1]
    if twice:
        makers = [described(n) for n in body.nodes if twice[0] in n.output]
        by = f" by {_listed(makers)}" if makers else ""
        raise UsageError(f"expected every name of {what} to be defined once, got '{twice[0]}' more than once{by}"
                         f"{_more(twice)}")  # fmt: skip


def _check_names(body: Body, defined: dict[int, set[str]]) -> None:
    """Raises where a node reads, or the body returns, what nothing defines."""
    scopes = list(_scopes(body, defined))
    for node in body.nodes:
        for name in node.input:
            if name and not any(name in scope for scope in scopes):
                raise UsageError(
                    f"expected '{name}', which {described(node)} of {body.name} reads, to be an input, an initializer "
                    "or the output of a node; got no definition of it"
                )
    returned = [v.name for v in body.graph.output] if body.graph is not None else list(_function(body).output)
    for name in returned:
        if not any(name in scope for scope in scopes):
            raise UsageError(f"expected output '{name}' of {body.name} to be computed, got no definition of it")


def _scopes(body: Body, defined: dict[int, set[str]]) -> Iterator[set[str]]:
    inner: Body | None = body
    while inner is not None:
        yield defined[id(inner)]
        inner = inner.parent


def _function(body: Body) -> onnx.FunctionProto:
    assert body.function is not None
    return body.function


# ---------------------------------------------------------------------- order


def _captures(every: Sequence[Body], defined: dict[int, set[str]]) -> dict[int, set[str]]:
    """Returns graph -> the names that it and the graphs in it take from outside, inner ones first."""
    found: dict[int, set[str]] = {}
    for body in reversed(every):  # inner bodies come after their outer ones
        if body.graph is None:
            continue
        read = {name for node in body.nodes for name in node.input if name} | {v.name for v in body.graph.output}
        for node in body.nodes:
            for graph in subgraphs(node):
                read |= found[_key(graph)]
        found[_key(body.graph)] = read - defined[id(body)]
    return found


def _key(graph: onnx.GraphProto) -> int:
    return id(graph)


def _order(body: Body, captured: dict[int, set[str]]) -> None:
    """Sorts the nodes of a body where one comes before another that it needs.

    Raises:
        UsageError: there is a cycle.
    """
    nodes = list(body.nodes)
    maker = {name: i for i, node in enumerate(nodes) for name in node.output if name}
    needs = [sorted({maker[n] for n in _read(node, captured) if n in maker}) for node in nodes]
    if all(not before or before[-1] < i for i, before in enumerate(needs)):
        return
    order = _sorted(needs)
    if len(order) < len(nodes):
        cycle = [described(nodes[i]) for i in _cycle(needs, set(range(len(nodes))) - set(order))]
        more = f" and {len(cycle) - _SHOWN} more" if len(cycle) > _SHOWN else ""
        raise UsageError(
            f"expected {body.name} to have no cycle, got one of {len(cycle)} nodes: {' -> '.join(cycle[:_SHOWN])}"
            f"{more} -> {cycle[0]}"
        )
    copies = []
    for i in order:
        copy = onnx.NodeProto()
        copy.CopyFrom(nodes[i])
        copies.append(copy)
    field = body.graph.node if body.graph is not None else _function(body).node
    del field[:]
    field.extend(copies)


def _read(node: onnx.NodeProto, captured: dict[int, set[str]]) -> Iterable[str]:
    yield from node.input
    for graph in subgraphs(node):
        yield from captured[_key(graph)]


def _sorted(needs: Sequence[Sequence[int]]) -> list[int]:
    """Returns an order of execution, as near to the present one as can be; without those that hang on a cycle."""
    left = [len(before) for before in needs]
    readers: dict[int, list[int]] = {}
    for i, before in enumerate(needs):
        for j in before:
            readers.setdefault(j, []).append(i)
    ready = [i for i, count in enumerate(left) if count == 0]
    order = []
    while ready:
        i = heapq.heappop(ready)
        order.append(i)
        for j in readers.get(i, ()):
            left[j] -= 1
            if left[j] == 0:
                heapq.heappush(ready, j)
    return order


def _cycle(needs: Sequence[Sequence[int]], stuck: set[int]) -> list[int]:
    """Returns the nodes of one cycle among those that could not be ordered, in the order of the data."""
    path: dict[int, None] = {}
    i = min(stuck)
    while i not in path:
        path[i] = None
        i = next(j for j in needs[i] if j in stuck)
    ring = list(path)
    return ring[ring.index(i) :][::-1]


def _check_calls(model: onnx.ModelProto) -> None:
    """Raises where functions call each other in a ring."""
    number = {(f.domain, f.name): i for i, f in enumerate(model.functions)}
    called: list[set[int]] = [set() for _ in model.functions]
    for body in bodies(model):
        outer = body
        while outer.parent is not None:
            outer = outer.parent
        if outer.function is None:
            continue
        own = number[(outer.function.domain, outer.function.name)]
        called[own] |= {number[key] for n in body.nodes if (key := (n.domain, n.op_type)) in number}
    needs = [sorted(c) for c in called]
    order = _sorted(needs)
    if len(order) < len(needs):
        ring = _cycle(needs, set(range(len(needs))) - set(order))
        raise UsageError(f"expected functions that do not call themselves, got a ring of calls: "
                         f"{_listed([model.functions[i].name for i in ring])}")  # fmt: skip


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_SHOWN])
    return shown if len(names) <= _SHOWN else f"{shown} and {len(names) - _SHOWN} more"


def _more(names: Sequence[str]) -> str:
    return f" (and {len(names) - 1} more names)" if len(names) > 1 else ""
