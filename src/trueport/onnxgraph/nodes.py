"""All nodes of a model, those of subgraphs and functions too."""

from __future__ import annotations

from collections.abc import Iterator

import onnx

from trueport.onnxgraph.nesting import bodies

RANDOM = frozenset(
    {"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Multinomial", "Bernoulli"}
)
"""Operators of `ai.onnx` that draw random numbers."""


def all_nodes(model: onnx.ModelProto) -> Iterator[onnx.NodeProto]:
    """Yields every node of the graph, its subgraphs and the model's functions, outer graphs first.

    Raises:
        UsageError: graphs are nested too deeply.
    """
    for body in bodies(model):
        yield from body.nodes


def random_operators(model: onnx.ModelProto) -> tuple[str, ...]:
    """Returns the sorted names of operators that draw random numbers; dropout draws where it is told to train."""
    true = {t.name for t in model.graph.initializer if t.data_type == onnx.TensorProto.BOOL and _is_true(t)}
    true |= {i.name for i in model.graph.input}
    found = set()
    for node in all_nodes(model):
        if node.domain in ("", "ai.onnx") and (node.op_type in RANDOM or _trains(node, true)):
            found.add(node.op_type)
        true |= _true_constant(node)
    return tuple(sorted(found))


def undefined_operators(model: onnx.ModelProto) -> tuple[str, ...]:
    """Returns the sorted names of operators in ONNX's own domain that ONNX does not have in any version."""
    functions = {(f.domain, f.name) for f in model.functions}
    own = [n for n in all_nodes(model) if n.domain in ("", "ai.onnx") and (n.domain, n.op_type) not in functions]
    return tuple(sorted({n.op_type for n in own if not onnx.defs.has(n.op_type)}))


def _trains(node: onnx.NodeProto, true: set[str]) -> bool:
    return node.op_type == "Dropout" and len(node.input) > 2 and node.input[2] in true


def _is_true(tensor: onnx.TensorProto) -> bool:
    return any(tensor.raw_data) or any(tensor.int32_data)


def _true_constant(node: onnx.NodeProto) -> set[str]:
    if node.op_type != "Constant":
        return set()
    tensors = [a.t for a in node.attribute if a.HasField("t")]
    bools = [t for t in tensors if t.data_type == onnx.TensorProto.BOOL]
    return set(node.output) if any(_is_true(t) for t in bools) else set()
