"""`tf2onnx.convert.from_function`, taken apart at its own joints so that every stage can be executed.

The steps, their order and their options are those of `tf2onnx.convert._convert_common` (tf2onnx 1.17). It reports
success with TensorFlow's own operators left in the file; they are found right after the node conversion, by name.
"""

from __future__ import annotations

import contextlib
import copy
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import onnx
import tensorflow as tf
from tf2onnx import optimizer, tf_loader, utils
from tf2onnx.convert import tensor_names_from_structed
from tf2onnx.tfonnx import process_tf_graph

from trueport.adapters.converters._onnx_checkpoint import file_checkpoint, model_checkpoint
from trueport.adapters.converters._onnx_to_onnx import serialized, silenced
from trueport.adapters.float64.tensorflow.executable import TensorFlowExecutable
from trueport.adapters.float64.tensorflow.functions import program_of_graph
from trueport.adapters.protocols import Checkpoint, ConverterOptions, Executed, Switches
from trueport.adapters.sources.tensorflow_source import TensorFlowSource
from trueport.core.result import NodeRef
from trueport.core.subject import Subject
from trueport.core.taxonomy import Stage
from trueport.core.versions import package_versions
from trueport.onnxgraph.nodes import all_nodes

_PASSES = tuple(optimizer._optimizers)
_LAST = "after all passes"


class UnsupportedOpError(Exception):
    """Operators were not translated and are left in the model as they were.

    Attributes:
        operators: names of the operators, sorted.
        nodes: the nodes that have them.
    """

    def __init__(self, nodes: Sequence[onnx.NodeProto]) -> None:
        self.operators = tuple(sorted({node.op_type for node in nodes}))
        self.nodes = tuple(nodes)
        super().__init__(f"no translation for {', '.join(self.operators)}; left in the file: {len(nodes)} nodes")


@dataclass(frozen=True)
class _Frozen:
    """The frozen graph and the names by which it is fed."""

    definition: Any
    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    renamed: dict[str, str]


class Tf2Onnx:
    """The converter from TensorFlow to ONNX."""

    name = "tf2onnx"
    frameworks = frozenset({"tensorflow"})
    plan = (
        (Stage.LOAD_MODEL, "frozen graph"),
        (Stage.NODE_CONVERSION, "ONNX before optimization"),
        *((Stage.OPTIMIZATION, f"ONNX after {name}") for name in _PASSES),
        (Stage.OPTIMIZATION, f"ONNX {_LAST}"),
        (Stage.EXPORT, "file read back"),
    )

    def __init__(self) -> None:
        self._kept: tuple[onnx.ModelProto, Any, str] | None = None

    def convert(self, subject: Subject, options: ConverterOptions) -> Iterator[Checkpoint]:
        """Yields the checkpoints of `plan`.

        Raises:
            UnsupportedOpError: operators are left untranslated, also in what the optimizers would make of it.
        """
        self._kept = None
        frozen = _freeze(subject.model)
        yield Checkpoint(Stage.LOAD_MODEL, self.plan[0][1], _executable(frozen, options))
        graph = _translate(frozen, options.opset)
        before = _model(graph, frozen.name)
        left = _untranslated(before)
        if left:
            left = _untranslated(_model(optimizer.optimize_graph(copy.deepcopy(graph)), frozen.name))
        if left:
            raise UnsupportedOpError(left)
        self._kept = (before, copy.deepcopy(graph), frozen.name)
        yield model_checkpoint(Stage.NODE_CONVERSION, self.plan[1][1], before, options)
        model = before
        for name, optimized in _optimize(graph):
            # A pass that changed nothing hands on the same model, which need not be judged again.
            model = model if optimized is None else _model(optimized, frozen.name)
            yield model_checkpoint(Stage.OPTIMIZATION, f"ONNX {name}", model, options)
        path = options.folder / "model.onnx"
        utils.save_protobuf(str(path), model)
        yield file_checkpoint(self.plan[-1][1], path, options, {"opset_requested": options.opset})

    def switches(self, model: onnx.ModelProto, options: ConverterOptions) -> Switches | None:
        """Returns its optimizers, for the model before optimization that this object made last; None for others.

        They work on tf2onnx's own graph, which cannot be had from the model.
        """
        del options
        if self._kept is None or serialized(self._kept[0]) != serialized(model):
            return None
        return _Optimizers(self._kept[1], self._kept[2])

    def blame(self, error: BaseException) -> tuple[NodeRef, ...]:
        """Returns the nodes that were not translated."""
        if not isinstance(error, UnsupportedOpError):
            return ()
        return tuple(NodeRef(node.name, node.op_type) for node in error.nodes[:20])

    def versions(self) -> dict[str, str]:
        """Returns the versions of tf2onnx, TensorFlow, Keras and onnx."""
        return package_versions("tf2onnx", "tensorflow", "tensorflow-cpu", "keras", "onnx")


class _Optimizers:
    """tf2onnx's optimizers on one graph; with none off they are run as `tf2onnx` runs them."""

    names = _PASSES

    def __init__(self, graph: Any, name: str) -> None:
        self._graph, self._name = graph, name

    def run(self, off: frozenset[str]) -> Executed:
        on = OrderedDict((name, made) for name, made in optimizer._optimizers.items() if name not in off)
        with silenced():
            graph = optimizer.optimize_graph(copy.deepcopy(self._graph), optimizers=on)
            return Executed(_model(graph, self._name))


def _freeze(source: TensorFlowSource) -> _Frozen:
    """Returns the graph with its variables as constants, after TensorFlow's own optimizations."""
    function = source.function
    inputs = [i.tensor for i in source.inputs]
    outputs = [tensor for _, tensor in source.outputs]
    renamed = tensor_names_from_structed(function, inputs, outputs)
    with tf.device("/cpu:0"):
        definition = tf_loader.from_function(function, inputs, outputs)
    name = getattr(function, "name", b"model")
    return _Frozen(
        definition, name.decode() if isinstance(name, bytes) else str(name), tuple(inputs), tuple(outputs), renamed
    )


def _executable(frozen: _Frozen, options: ConverterOptions) -> TensorFlowExecutable:
    nodes = {node.name for node in frozen.definition.node}
    kept = [
        (place, name, tensor)
        for place, (name, tensor) in enumerate(zip(options.input_names, frozen.inputs, strict=True))
        if tensor.partition(":")[0] in nodes
    ]
    program = program_of_graph(
        frozen.definition,
        [(name, tensor) for _, name, tensor in kept],
        [(tensor, tensor) for tensor in frozen.outputs],
    )
    return TensorFlowExecutable(program, {name: place for place, name, _ in kept})


def _translate(frozen: _Frozen, opset: int | None) -> Any:
    """Returns tf2onnx's graph after the node conversion."""
    with tf.Graph().as_default() as graph, tf.device("/cpu:0"):
        tf.import_graph_def(frozen.definition, name="")
        return process_tf_graph(
            graph, continue_on_error=True, opset=opset, input_names=list(frozen.inputs),
            output_names=list(frozen.outputs), tensors_to_rename=dict(frozen.renamed),
        )  # fmt: skip


def _model(graph: Any, name: str) -> onnx.ModelProto:
    made: onnx.ModelProto = copy.deepcopy(graph).make_model(f"converted from {name}")
    return made


def _optimize(graph: Any) -> Iterator[tuple[str, Any]]:
    """Yields tf2onnx's graph after each of its optimizers in the first round, and after all rounds.

    None stands for a graph that the optimizer did not change. As there, an optimizer that raises is left out.
    """
    again, iteration = True, 0
    while again:
        again = False
        for name, factory in optimizer._optimizers.items():
            made, before = factory(), graph
            with contextlib.suppress(Exception):  # tf2onnx goes on without this optimizer as well
                graph = made.optimize(copy.deepcopy(graph), iteration) or graph
                again = again or made.graph_been_opt
            if iteration == 0:
                # Its own word is not enough: what removes a useless Transpose, for one, does not tell.
                yield f"after {name}", None if _equal(before, graph) else graph
        iteration += 1
    with contextlib.suppress(Exception):  # it goes on unsorted as well
        graph.topological_sort(graph.get_nodes())
    yield _LAST, graph


def _equal(one: Any, other: Any) -> bool:
    """Whether two graphs of tf2onnx have the same nodes, values and outputs, in nested graphs as well."""
    if one is other:
        return True
    # The types and shapes of values are kept beside the nodes and are written into the file.
    if any(vars(one)[name] != vars(other)[name] for name in ("outputs", "_dtypes", "_output_shapes")):
        return False
    first, second = ({node.name: node for node in graph.get_nodes()} for graph in (one, other))
    return first.keys() == second.keys() and all(_equal_nodes(node, second[name]) for name, node in first.items())


def _equal_nodes(one: Any, other: Any) -> bool:
    """Whether two nodes do the same to the same values; attributes are compared as they are, weights included."""
    if any(getattr(one, name) != getattr(other, name) for name in ("type", "domain", "input", "output", "attr")):
        return False
    first, second = (node.get_body_graphs() or {} for node in (one, other))
    return first.keys() == second.keys() and all(_equal(body, second[name]) for name, body in first.items())


def _untranslated(model: onnx.ModelProto) -> list[onnx.NodeProto]:
    """Returns the nodes whose operator no operator set of the model has."""
    versions = {entry.domain: entry.version for entry in model.opset_import}
    functions = {(f.domain, f.name) for f in model.functions}
    return [
        node for node in all_nodes(model) if (node.domain, node.op_type) not in functions and not _known(node, versions)
    ]


def _known(node: onnx.NodeProto, versions: dict[str, int]) -> bool:
    domain = "" if node.domain == "ai.onnx" else node.domain
    if domain not in ("", "ai.onnx.ml"):
        return domain in versions
    return bool(onnx.defs.has(node.op_type, domain=domain, max_inclusive_version=versions.get(domain, 1)))
