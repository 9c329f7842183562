"""A run of a program, node by node: what a locator compares."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray

Array = NDArray[Any]

CONSTANTS_SHARE = 0.25
"""The share of the limit of memory that values which depend on no input may take."""


@dataclass(frozen=True)
class TracedNode:
    """One node of a program.

    Attributes:
        name: of the node.
        operator: as its framework calls it: `aten.softmax.int`, `Softmax`.
        inputs: names of the values that it takes; '' for one left out.
        outputs: names of the values that it makes.
        source: `file.py:LINE` of the model, or ''.
        module: path of the module that it belongs to, or ''.
        origin: name of the source's node that a converter says it was made from, or ''.
    """

    name: str
    operator: str
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    source: str = ""
    module: str = ""
    origin: str = ""


@dataclass(frozen=True)
class TracedRun:
    """Values of one run in float64.

    Attributes:
        nodes: in the order in which they ran.
        values: name of a value -> array; float64 for floating-point types, own types for others.
        floors: size of the noise of each floating-point value, where it was measured.
        outputs: names of the program's outputs, in order; '' for one that is no value of a node.
        constants: names of values that depend on no input.
        left_out: values that were too large to be kept.
    """

    nodes: tuple[TracedNode, ...]
    values: Mapping[str, Array]
    floors: Mapping[str, Array] = field(default_factory=dict)
    outputs: tuple[str, ...] = ()
    constants: frozenset[str] = frozenset()
    left_out: int = 0


See = Callable[[TracedNode, "list[Any]"], "list[Any]"]
"""(node, its outputs) -> the outputs that the rest of the program sees. The arrays must not be modified."""
Follow = Callable[[See, "int | None"], "list[Any]"]
"""(see, number of a noisy run or None) -> the program's outputs, on one input set."""
