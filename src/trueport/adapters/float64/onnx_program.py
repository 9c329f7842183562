"""An ONNX model as an executable, fed by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import onnx
from numpy.typing import NDArray

from trueport.adapters.float64.onnx import Float64Evaluator
from trueport.adapters.float64.onnx.dialect import ONNX
from trueport.adapters.float64.replay.executable import GraphExecutable
from trueport.adapters.float64.replay.operation import Operation
from trueport.inputs.draw import InputSet
from trueport.onnxgraph.interface import Interface, read_interface

Array = NDArray[Any]


class OnnxProgram(GraphExecutable):
    """Evaluates a `ModelProto` in float64.

    Args:
        model: with its weights inside.
        leaf_names: names of the subject's tensor inputs, in the order of an input set's arrays.
        name_map: input of the model -> leaf of the subject, where names differ.
    """

    def __init__(
        self, model: onnx.ModelProto, leaf_names: Sequence[str], name_map: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(ONNX)
        self.model = model
        self.interface: Interface = read_interface(model)
        self.pairs = self.interface.pair(leaf_names, name_map or {})

    @cached_property
    def program(self) -> Float64Evaluator:
        """The evaluator of the model."""
        return Float64Evaluator(self.model)

    @cached_property
    def _constant_values(self) -> frozenset[str]:
        """Names of the values that depend on no input of the model."""
        graph = self.model.graph
        constant = {t.name for t in graph.initializer} | {""}
        for node in graph.node:
            if all(name in constant for name in node.input) and not any(a.HasField("g") for a in node.attribute):
                constant.update(node.output)
        return frozenset(constant - {""})

    def is_constant(self, operation: Operation) -> bool:
        """Whether a node depends on no input of the model."""
        node = getattr(operation, "call").node  # noqa: B009 - a step of the ONNX evaluator, which is an `Operation`
        return bool(node.outputs) and node.outputs[0] in self._constant_values

    def value_types(self) -> dict[str, str]:
        """Returns the element types that the values of the main graph and its inputs really have, where known."""
        types = dict(zip(self.program.input_names, self.program.input_dtypes, strict=True))
        return {name: kind for name, kind in (types | self.program.types_of_values()).items() if kind}

    def constant_values(self) -> frozenset[str]:
        """Returns the names of the values that depend on no input: initializers too."""
        return self._constant_values

    def feeds(self, inputs: InputSet) -> dict[str, Array]:
        """Returns the model's inputs by name.

        Raises:
            InterfaceError: an input of the model has no counterpart, or a declared size does not fit.
        """
        return self.interface.feeds(self.pairs, inputs.arrays)
