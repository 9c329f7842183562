"""A TensorFlow graph that a converter made of the source, judged like any other checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trueport.adapters.float64.replay.executable import GraphExecutable
from trueport.adapters.float64.tensorflow.dialect import TENSORFLOW
from trueport.adapters.float64.tensorflow.program import TensorFlowProgram
from trueport.inputs.draw import InputSet


class TensorFlowExecutable(GraphExecutable):
    """A frozen graph.

    Args:
        program: whose inputs are named like the leaves of the source.
        places: input of the program -> number of the source's leaf.
    """

    def __init__(self, program: TensorFlowProgram, places: Mapping[str, int]) -> None:
        super().__init__(TENSORFLOW)
        self._program = program
        self._places = dict(places)

    @property
    def program(self) -> TensorFlowProgram:
        """The graph."""
        return self._program

    def feeds(self, inputs: InputSet) -> dict[str, Any]:
        """Returns the graph's inputs by name; one that the converter dropped is not among them."""
        return {name: inputs.arrays[place] for name, place in self._places.items()}
