"""Edits of ONNX graphs by name of a node's first output; each changes the model that it is given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper, parser

Edit = Callable[[onnx.ModelProto], None]


def node(model: onnx.ModelProto, output: str) -> onnx.NodeProto:
    """Returns the node that makes a value."""
    return next(n for n in model.graph.node if output in n.output)


def tensor(model: onnx.ModelProto, name: str) -> onnx.TensorProto:
    """Returns an initializer."""
    return next(t for t in model.graph.initializer if t.name == name)


def array(model: onnx.ModelProto, name: str) -> Any:
    """Returns the values of an initializer, as a copy."""
    return numpy_helper.to_array(tensor(model, name)).copy()


def put(model: onnx.ModelProto, name: str, value: Any) -> None:
    """Sets or adds an initializer."""
    for old in [t for t in model.graph.initializer if t.name == name]:
        model.graph.initializer.remove(old)
    model.graph.initializer.append(numpy_helper.from_array(np.asarray(value), name))


def put_nodes(model: onnx.ModelProto, nodes: list[Any]) -> None:
    """Sets the nodes, which may be some of the model's own."""
    copies = []
    for item in nodes:
        copy = onnx.NodeProto()
        copy.CopyFrom(item)
        copies.append(copy)
    del model.graph.node[:]
    model.graph.node.extend(copies)


def attribute(output: str, **values: Any) -> Edit:
    """Sets attributes of a node; None removes one."""

    def edit(model: onnx.ModelProto) -> None:
        found = node(model, output)
        for name, value in values.items():
            for old in [a for a in found.attribute if a.name == name]:
                found.attribute.remove(old)
            if value is not None:
                found.attribute.append(helper.make_attribute(name, value))

    return edit


def constant(name: str, change: Callable[[Any], Any]) -> Edit:
    """Changes an initializer; its type stays."""

    def edit(model: onnx.ModelProto) -> None:
        before = array(model, name)
        put(model, name, np.asarray(change(before)).astype(before.dtype))

    return edit


def operands(output: str, *names: str) -> Edit:
    """Gives a node other operands."""

    def edit(model: onnx.ModelProto) -> None:
        found = node(model, output)
        del found.input[:]
        found.input.extend(names)

    return edit


def operator(output: str, op_type: str) -> Edit:
    """Replaces an operator by another of the same operands; attributes are dropped."""

    def edit(model: onnx.ModelProto) -> None:
        found = node(model, output)
        found.op_type = op_type
        del found.attribute[:]

    return edit


def written(outputs: str, text: str, **constants: Any) -> Edit:
    """Replaces the nodes that make `outputs` (separated by blanks) by those of a text, at the place of the first."""

    def edit(model: onnx.ModelProto) -> None:
        removed = [node(model, name) for name in outputs.split()]
        last = max(i for i, n in enumerate(model.graph.node) if n in removed)
        kept = [(i, n) for i, n in enumerate(model.graph.node) if n not in removed]
        made = list(parser.parse_graph("g () => () {" + text + "}").node)
        nodes = [n for i, n in kept if i < last] + made + [n for i, n in kept if i > last]
        put_nodes(model, nodes)
        for name, value in constants.items():
            put(model, name, value)

    return edit


def both(*edits: Edit) -> Edit:
    """Makes several edits."""

    def edit(model: onnx.ModelProto) -> None:
        for one in edits:
            one(model)

    return edit
