"""Every graph of a model, the nested ones and those of functions included, without recursion.

Nesting is bounded: a file cannot nest deeper than its parser allows, a model made in memory could.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import onnx

from trueport.core.errors import UsageError

DEEPEST = 32
"""How deeply graphs may be nested: protobuf parses messages to a depth of 100, and a nested graph is three of them."""


@dataclass(frozen=True, eq=False)
class Body:
    """A graph or the body of a function.

    Attributes:
        name: for messages.
        nodes: the repeated field itself.
        graph: the graph, or None for a function.
        function: the function, or None for a graph.
        parent: the body that holds the node with this graph, or None.
        depth: 0 for the graph of the model and for functions.
    """

    name: str
    nodes: Sequence[onnx.NodeProto]
    graph: onnx.GraphProto | None
    function: onnx.FunctionProto | None
    parent: Body | None
    depth: int


def bodies(model: onnx.ModelProto) -> Iterator[Body]:
    """Yields the graph of the model, its functions, and all graphs nested in them, outer ones first.

    Raises:
        UsageError: they are nested deeper than `DEEPEST`.
    """
    waiting = [Body("the graph", model.graph.node, model.graph, None, None, 0)]
    waiting += [Body(f"function '{f.domain}:{f.name}'", f.node, None, f, None, 0) for f in reversed(model.functions)]
    while waiting:
        body = waiting.pop()
        yield body
        for node in body.nodes:
            if not node.attribute:
                continue
            for graph in subgraphs(node):
                if body.depth == DEEPEST:
                    raise UsageError(f"expected graphs nested at most {DEEPEST} deep, got more at {described(node)}")
                inner = Body(f"a graph of {described(node)}", graph.node, graph, None, body, body.depth + 1)
                waiting.append(inner)


def subgraphs(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    """Yields the graphs among the attributes of a node."""
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        if attribute.graphs:
            yield from attribute.graphs


def tensors(model: onnx.ModelProto) -> Iterator[onnx.TensorProto]:
    """Yields every tensor of a model: initializers, the parts of sparse ones, those among attributes."""
    for body in bodies(model):
        if body.graph is not None:
            yield from body.graph.initializer
            for sparse in body.graph.sparse_initializer:
                yield from (sparse.values, sparse.indices)
        for node in body.nodes:
            for attribute in node.attribute:
                yield from _of_attribute(attribute)


def sparse_tensors(model: onnx.ModelProto) -> Iterator[onnx.SparseTensorProto]:
    """Yields every sparse tensor of a model."""
    for body in bodies(model):
        if body.graph is not None:
            yield from body.graph.sparse_initializer
        for node in body.nodes:
            for attribute in node.attribute:
                if attribute.HasField("sparse_tensor"):
                    yield attribute.sparse_tensor
                yield from attribute.sparse_tensors


def _of_attribute(attribute: onnx.AttributeProto) -> Iterator[onnx.TensorProto]:
    if attribute.HasField("t"):
        yield attribute.t
    yield from attribute.tensors
    sparse = [attribute.sparse_tensor] if attribute.HasField("sparse_tensor") else []
    for item in (*sparse, *attribute.sparse_tensors):
        yield from (item.values, item.indices)


def described(node: onnx.NodeProto) -> str:
    """Returns a node for messages: its operator and its name, or its first output where it has none."""
    label = node.name or next((o for o in node.output if o), "")
    return f"{node.op_type[:60]} '{label[:80]}'"
