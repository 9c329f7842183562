"""What the reducer works on: a program that can say what may be taken away from it.

One implementation for each framework lives in `adapters/programs`. A program is a value: every change returns another
one. It carries the inputs at which the failure was seen, and the values that every node of the *original* program had
at each of them, so that whatever is cut away can be replaced by what it really computed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Protocol


class Phase(StrEnum):
    """What a change makes simpler, in the order in which the reducer tries it."""

    BYPASS = "bypass"
    CONSTANT = "constant"
    OUTPUTS = "outputs"
    INPUTS = "inputs"
    SHAPES = "shapes"
    WEIGHTS = "weights"
    ATTRIBUTES = "attributes"
    DTYPES = "dtypes"
    OPSET = "opset"
    VALUES = "values"


@dataclass(frozen=True)
class Node:
    """One operation of a program.

    Attributes:
        name: unique in the program, and kept by every change that keeps the node.
        operator: its type, as the framework calls it.
        reads: names of the values that it reads.
        writes: names of the values that it makes.
        source: the line of the model that it came from, or ''.
    """

    name: str
    operator: str
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    source: str = ""


@dataclass(frozen=True)
class Change:
    """A program that is simpler in one respect.

    Attributes:
        phase: in which respect.
        label: what was done, for people: "axis 1 of 'x' from 64 to 1".
        program: the result.
    """

    phase: Phase
    label: str
    program: Program


class Program(Protocol):
    """A program of one framework with the inputs at which it fails."""

    @property
    def framework(self) -> str:
        """`torch`, `tensorflow` or `onnx`."""
        ...

    @property
    def nodes(self) -> tuple[Node, ...]:
        """Its operations in an order in which they can run; parameters and constants are none."""
        ...

    @property
    def identity(self) -> str:
        """SHA-256 of everything that decides what it does, inputs included."""
        ...

    @property
    def order(self) -> tuple[int | str, ...]:
        """Where it stands in the total order of programs, the simplest first: nodes, inputs, elements, ..., text."""
        ...

    def keep(self, names: Collection[str]) -> Program | None:
        """Returns what is left with only these nodes, or None where that is no program.

        A value that a kept node reads and no kept node makes becomes an input with the recorded values of every failing
        input, or stays the constant that it was. Outputs are the values that no kept node reads.
        """
        ...

    def changes(self, phase: Phase) -> Iterator[Change]:
        """Yields simpler programs, the boldest first; each is below this one in the order."""
        ...

    def text(self) -> str:
        """Returns it in the framework's own words, as Python text that needs the framework and NumPy alone.

        The text defines `MODEL` and `EXAMPLES`, a list with the arguments of each failing call (by name for ONNX);
        arrays are written out, and a large one that cannot be told by a rule is compressed. `repro.py` begins with it.
        """
        ...

    def write(self, folder: Path) -> str:
        """Writes it into an empty folder and returns the MODEL that `trueport check` takes for it.

        What is written is what is judged and what is delivered: `model.py:model` in the framework's own words with its
        arrays beside it, or `model.onnx` with its inputs as a test case.
        """
        ...
