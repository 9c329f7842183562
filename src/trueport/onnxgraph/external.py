"""Which files besides the model file itself a model on disk consists of.

The names come from the model, which is untrusted: only plain files inside the model's own folder are returned.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import onnx

from trueport.core.errors import UsageError


def external_files(path: Path) -> list[Path]:
    """Returns the files with external data of a model, relative to its folder, each once and sorted.

    Args:
        path: the model file; its data is not read.

    Raises:
        UsageError: the model names a file outside its own folder, or one that is not there.
    """
    model = onnx.load(str(path), load_external_data=False)
    folder = path.parent.resolve()
    found = set()
    for tensor in _tensors(model):
        location = _location(tensor)
        if location is None:
            continue
        file = (folder / location).resolve()
        if not file.is_relative_to(folder) or not file.is_file():
            raise UsageError(
                f"'{path}': expected the external data of tensor '{tensor.name}' in a file of the model's own folder, "
                f"got '{location}'"
            )
        found.add(file.relative_to(folder))
    return sorted(found)


def _location(tensor: onnx.TensorProto) -> str | None:
    if tensor.data_location != onnx.TensorProto.EXTERNAL:
        return None
    return next((entry.value for entry in tensor.external_data if entry.key == "location"), "")


def _tensors(model: onnx.ModelProto) -> Iterator[onnx.TensorProto]:
    yield from _of_graph(model.graph)
    for function in model.functions:
        yield from _of_nodes(function.node)


def _of_graph(graph: onnx.GraphProto) -> Iterator[onnx.TensorProto]:
    yield from graph.initializer
    for sparse in graph.sparse_initializer:
        yield from (sparse.values, sparse.indices)
    yield from _of_nodes(graph.node)


def _of_nodes(nodes: Iterable[onnx.NodeProto]) -> Iterator[onnx.TensorProto]:
    for node in nodes:
        for attribute in node.attribute:
            if attribute.HasField("t"):
                yield attribute.t
            yield from attribute.tensors
            if attribute.HasField("g"):
                yield from _of_graph(attribute.g)
            for graph in attribute.graphs:
                yield from _of_graph(graph)
