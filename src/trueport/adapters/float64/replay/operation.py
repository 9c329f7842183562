"""What the replay needs of a graph: operators one by one, in order, with every floating-point value in float64."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from numpy.typing import NDArray

from trueport.core.trace import TracedNode

Array = NDArray[Any]


class Operation(Protocol):
    """One operator of a graph, met once per execution (in a loop once per turn)."""

    @property
    def operator(self) -> str:
        """The operator's name in its own framework: `MatMul`, `Conv2D`."""

    @property
    def label(self) -> str:
        """The node's name, for people."""

    @property
    def source(self) -> str:
        """`file.py:LINE` of the model where that is known, else ''."""

    @property
    def attributes(self) -> Mapping[str, Any]:
        """Its attributes as plain values."""

    @property
    def output_types(self) -> tuple[str, ...]:
        """The types that its outputs really have, as NumPy-style names (`float32` although it is held in float64)."""

    @property
    def nested(self) -> bool:
        """Whether it runs subgraphs, whose operators are followed themselves."""

    @property
    def coarse(self) -> bool:
        """Whether it is computed in its own types even here, and so has their noise."""

    def apply(self, arguments: Sequence[Any]) -> tuple[Any, ...]:
        """Returns its outputs for other arguments, in float64; never called for nested operators."""


Follower = Callable[[Operation, "list[Any]", "list[Any]"], "list[Any]"]
"""(operation, arguments, outputs) -> outputs that the rest of the graph sees. The arrays must not be modified."""


class Program(Protocol):
    """A graph that can be run in float64."""

    @property
    def input_names(self) -> tuple[str, ...]:
        """Inputs that a run may be given, in order."""

    @property
    def output_names(self) -> tuple[str, ...]:
        """Names of the outputs, in order."""

    @property
    def output_types(self) -> tuple[str, ...]:
        """Their real types; '' where the graph does not say."""

    @property
    def output_values(self) -> tuple[str, ...]:
        """Names, as nodes use them, of the values that are the outputs."""

    def traced(self, operation: Operation) -> TracedNode | None:
        """Returns what is known of an operation that a `Follower` was given; None for one inside a subgraph."""

    @property
    def missing(self) -> tuple[str, ...]:
        """Operators without a float64 kernel; a run that reaches one raises."""

    @property
    def constants(self) -> Mapping[str, Any]:
        """Weights and constants: name -> something with `value` (array) and `dtype` (the real type)."""

    def run(
        self,
        feeds: Mapping[str, Array],
        *,
        constants: Mapping[str, Array] | None = None,
        follow: Follower | None = None,
    ) -> list[Any]:
        """Returns the outputs: float64 for floating-point types (complex128 for complex), own types for others.

        Args:
            feeds: inputs by name.
            constants: float64 values in place of entries of `constants`.
            follow: called after each operator.
        """
