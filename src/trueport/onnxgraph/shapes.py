"""What is known of the sizes of values before a model is run: declared ones and those that ONNX infers."""

from __future__ import annotations

from collections.abc import Mapping

import onnx
import onnx.shape_inference

from trueport.onnxgraph.contents import size_bytes
from trueport.onnxgraph.nesting import bodies, tensors

Dims = tuple[int | str | None, ...]

_SMALL_BYTES = 4096
_MOST_BYTES = 2**29
_MOST_NODES = 20_000


def symbol_of(name: str, axis: int) -> str:
    """Returns the symbol of an axis of an input for which the model declares neither size nor symbol.

    >>> symbol_of("x", 0)
    'x:0'
    """
    return f"{name}:{axis}"


def known_dims(model: onnx.ModelProto) -> dict[str, Dims]:
    """Returns the dimensions of every value of the main graph whose rank is known.

    A dimension is a number, the symbol of a dynamic axis, or None. Undeclared axes of inputs have the symbol
    `symbol_of`. Inference is left out for models of very many nodes, where it would take long.
    """
    skeleton = _skeleton(model)
    if skeleton is not None:
        try:
            # Without propagation of data, which makes a list as long as a vector is declared to be.
            skeleton = onnx.shape_inference.infer_shapes(skeleton)
        except Exception:  # noqa: BLE001 - what cannot be inferred is not known; the model may be wrong on purpose
            skeleton = _skeleton(model)
    graph = model.graph if skeleton is None else skeleton.graph
    found = {t.name: tuple(t.dims) for t in model.graph.initializer}
    for info in (*graph.value_info, *graph.output, *graph.input):
        dims = _dims(info)
        if dims is not None:
            found.setdefault(info.name, dims)
    if skeleton is None:
        for info in graph.input:
            dims = _dims(info)
            if dims is not None:
                found[info.name] = tuple(symbol_of(info.name, i) if d is None else d for i, d in enumerate(dims))
    return found


def element_types(model: onnx.ModelProto) -> Mapping[str, int]:
    """Returns the ONNX number of the type of every initializer and declared tensor of the main graph."""
    found = {t.name: t.data_type for t in model.graph.initializer}
    for info in (*model.graph.input, *model.graph.value_info, *model.graph.output):
        if info.type.WhichOneof("value") == "tensor_type":
            found.setdefault(info.name, info.type.tensor_type.elem_type)
    return found


def _dims(info: onnx.ValueInfoProto) -> Dims | None:
    if info.type.WhichOneof("value") != "tensor_type" or not info.type.tensor_type.HasField("shape"):
        return None
    found: list[int | str | None] = []
    for dim in info.type.tensor_type.shape.dim:
        size = dim.dim_value if dim.HasField("dim_value") else None
        found.append((dim.dim_param or None) if size is None or size < 0 else size)
    return tuple(found)


def _skeleton(model: onnx.ModelProto) -> onnx.ModelProto | None:
    """Returns the model without its large weights, which become inputs; None where that is still too large."""
    every = list(bodies(model))
    nodes = sum(len(body.nodes) for body in every)
    # By their shapes: asking protobuf for its bytes copies them.
    inside = sum(size_bytes(t) for t in tensors(model)) - sum(size_bytes(t) for t in model.graph.initializer)
    if nodes > _MOST_NODES or inside > _MOST_BYTES:
        return None
    bare = onnx.ModelProto(ir_version=model.ir_version, opset_import=model.opset_import, functions=model.functions)
    graph = bare.graph
    graph.name = "skeleton"
    for field in ("node", "input", "output", "value_info"):
        getattr(graph, field).extend(getattr(model.graph, field))
    declared = {v.name for v in graph.input}
    for tensor in model.graph.initializer:
        if size_bytes(tensor) <= _SMALL_BYTES:
            graph.initializer.append(tensor)
        elif tensor.name not in declared:
            graph.input.append(onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, list(tensor.dims)))
    for info in graph.input:
        if info.type.WhichOneof("value") == "tensor_type":
            for axis, dim in enumerate(info.type.tensor_type.shape.dim):
                if not dim.dim_param and not (dim.HasField("dim_value") and dim.dim_value >= 0):
                    dim.dim_param = symbol_of(info.name, axis)
    return bare
