"""Concrete functions and frozen graphs as programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from trueport.adapters.float64.tensorflow.operations import as_array
from trueport.adapters.float64.tensorflow.program import TensorFlowProgram
from trueport.adapters.sources.tensorflow_source import TensorFlowSource


def program_of_source(source: TensorFlowSource) -> TensorFlowProgram:
    """Returns the program of a concrete function, with the tensors and variables that it captured."""
    graph = source.function.graph
    return TensorFlowProgram(
        graph,
        [(i.name, i.tensor) for i in source.inputs],
        source.outputs,
        {name: as_array(value) for name, value in source.captures.items()},
        graph.variables,
    )


def program_of_graph(
    definition: Any, inputs: Sequence[tuple[str, str]], outputs: Sequence[tuple[str, str]]
) -> TensorFlowProgram:
    """Returns the program of a frozen graph.

    Args:
        definition: a `GraphDef` without variables.
        inputs: (name for users, tensor of the graph), in order.
        outputs: the same for outputs.
    """
    graph = tf.Graph()
    with graph.as_default():
        tf.import_graph_def(definition, name="")
    return TensorFlowProgram(graph, inputs, outputs)
