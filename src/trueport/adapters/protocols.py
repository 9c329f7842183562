"""The seams between engines and tools: what a converter hands over, what a runtime can do."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from numpy.typing import NDArray

from trueport.adapters.float64.constants import KnownNumbers
from trueport.adapters.float64.onnx.rounding import Budget
from trueport.core.errors import ToolError
from trueport.core.result import NodeRef
from trueport.core.subject import Subject
from trueport.core.taxonomy import Stage
from trueport.inputs.draw import InputSet

Array = NDArray[Any]


class NoFloat64Error(ToolError):
    """An operator has no float64 kernel, so the meaning lane cannot judge this checkpoint.

    Attributes:
        operators: the operators concerned.
    """

    def __init__(self, operators: tuple[str, ...]) -> None:
        super().__init__(f"no float64 kernel for {', '.join(operators)}")
        self.operators = operators


class StageFailure(Exception):  # noqa: N818 - carries another exception; it is no error of its own
    """A converter failed in a stage that the order of its checkpoints does not show; raised from the real exception."""

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self.stage = stage


@dataclass(frozen=True)
class Wide:
    """An output in float64, and the type that it really has ('' where the model does not declare it)."""

    value: Array
    dtype: str


class Executable(Protocol):
    """Something that computes the subject's function."""

    def evaluate(self, inputs: InputSet, known: KnownNumbers) -> list[Wide]:
        """Returns the outputs with every float16, bfloat16 and float32 value held in float64.

        Args:
            inputs: one input set.
            known: what the source holds; casts to types that it does not use are carried out.

        Raises:
            NoFloat64Error: an operator has no float64 kernel.
        """

    def noisy(self, inputs: InputSet, *, draws: int, seed: int, known: KnownNumbers) -> list[list[Array]]:
        """Returns evaluations with the program's own float64 noise and its computed constants off by a last place.

        Args:
            inputs: one input set.
            draws: number of evaluations.
            seed: of the noise.
            known: the numbers that the source itself holds; they carry no noise.
        """


@dataclass(frozen=True)
class Checkpoint:
    """The end of a stage: something executable, and the ONNX model where it is one.

    Attributes:
        stage: the stage that it ends.
        name: what it is, for people.
        executable: how to evaluate it.
        model: the `ModelProto`, or None.
        path: where the file lies, for the checkpoint that is a file.
        facts: what the converter reported about it (opset asked for and granted, notes).
    """

    stage: Stage
    name: str
    executable: Executable
    model: Any = None
    path: Path | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ConverterOptions:
    """What a converter needs to know besides the subject.

    Attributes:
        opset: the ONNX operator set asked for, or None for the converter's default.
        folder: an empty private folder for the file.
        input_names: names of the subject's tensor inputs, in the order in which its arguments flatten.
        dynamic_axes: input name -> axis -> symbol, for converters that take dynamic axes so.
        entered: called when a stage begins that no checkpoint announces, so that a process that dies in it can be
            attributed.
    """

    folder: Path
    opset: int | None = None
    input_names: tuple[str, ...] = ()
    dynamic_axes: Mapping[str, Mapping[int, str]] = field(default_factory=dict)
    entered: Callable[[Stage], None] = lambda _: None


class Converter(Protocol):
    """Turns a subject into an ONNX file in stages."""

    name: str
    plan: tuple[tuple[Stage, str], ...]
    """(stage, checkpoint) in order; the one that was due when an exception left `convert` is the one that crashed."""

    def convert(self, subject: Subject, options: ConverterOptions) -> Iterator[Checkpoint]:
        """Yields the checkpoints of the plan in order."""

    def blame(self, error: BaseException) -> tuple[NodeRef, ...]:
        """Returns the operators, with their lines in the model, at which the converter raised."""

    def versions(self) -> dict[str, str]:
        """Returns the versions of the packages behind it."""


class Session(Protocol):
    """A loaded model."""

    def run(self, feeds: Mapping[str, Array]) -> list[Array]:
        """Returns the outputs in the model's own types."""


class Runtime(Protocol):
    """Executes ONNX files as users run them."""

    name: str

    def load(self, path: Path, *, optimized: bool = True) -> Session:
        """Returns a session; `optimized=False` switches the runtime's own optimizations off."""

    def versions(self) -> dict[str, str]:
        """Returns the versions of the packages behind it."""

    @property
    def budgets(self) -> Mapping[str, Budget]:
        """What its kernels may be off by, per operator."""


__all__ = [
    "Array",
    "Checkpoint",
    "Converter",
    "ConverterOptions",
    "Executable",
    "NoFloat64Error",
    "Runtime",
    "Session",
    "StageFailure",
    "Wide",
]
