"""Sizes of dynamic axes that the weights behind them dictate: the channels of an image, the features of a row."""

from __future__ import annotations

from collections.abc import Iterator

import onnx

from trueport.onnxgraph.consumers import Readers
from trueport.onnxgraph.facts import attribute

_PER_CHANNEL = frozenset({"BatchNormalization", "InstanceNormalization", "GroupNormalization"})
_RECURRENT = frozenset({"RNN", "GRU", "LSTM"})


def size_hints(model: onnx.ModelProto) -> dict[tuple[str, int], int]:
    """Returns (input, axis) -> size, for inputs that an operator with constant weights reads directly."""
    weights = {t.name: tuple(t.dims) for t in model.graph.initializer}
    readers = Readers(model)
    found: dict[tuple[str, int], int] = {}
    for info in model.graph.input:
        if info.type.WhichOneof("value") != "tensor_type" or info.name in weights:
            continue
        rank = len(info.type.tensor_type.shape.dim)
        for node, operand in readers.of(info.name):
            for axis, size in _told(node, operand, rank, weights):
                if axis < rank:
                    found.setdefault((info.name, axis), size)
    return found


def _told(
    node: onnx.NodeProto, operand: int, rank: int, weights: dict[str, tuple[int, ...]]
) -> Iterator[tuple[int, int]]:
    """Yields (axis, size) of the first operand."""
    if operand != 0 or len(node.input) < 2:
        return
    dims = weights.get(node.input[1])
    if not dims:
        return
    if node.op_type == "Conv" and len(dims) > 1:
        yield 1, dims[1] * attribute(node, "group", 1)
    elif node.op_type == "ConvTranspose" or node.op_type in _PER_CHANNEL:
        yield 1, dims[0]
    elif node.op_type == "MatMul" and rank:
        yield rank - 1, dims[-2] if len(dims) > 1 else dims[0]
    elif node.op_type == "Gemm" and len(dims) == 2:
        yield 0 if attribute(node, "transA", 0) else 1, dims[1 if attribute(node, "transB", 0) else 0]
    elif node.op_type in _RECURRENT and len(dims) == 3:
        yield 2, dims[2]
