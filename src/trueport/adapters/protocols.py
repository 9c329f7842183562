"""The seams between engines and tools: what a converter hands over, what a runtime can do."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from numpy.typing import NDArray

from trueport.adapters.float64.constants import KnownNumbers
from trueport.adapters.float64.replay.rounding import Budget
from trueport.core.errors import ToolError
from trueport.core.options import DynamicAxis as RequestedAxis
from trueport.core.result import NodeRef
from trueport.core.subject import Subject
from trueport.core.taxonomy import Kind, Stage
from trueport.core.trace import See, TracedRun
from trueport.inputs.draw import InputSet
from trueport.inputs.spec import DynamicAxis, LeafSpec
from trueport.oracle.compare import SourceReference
from trueport.oracle.fingerprint import Fingerprint
from trueport.oracle.noise import Draws

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

    def trace(self, inputs: InputSet, known: KnownNumbers, *, draws: int, seed: int, limit_bytes: int) -> TracedRun:
        """Returns one run in float64 with the values of all nodes.

        Args:
            inputs: one input set.
            known: what the source holds.
            draws: noisy runs, for the floors of the values; none leaves them out.
            seed: of the noise.
            limit_bytes: what all values together may take; those beyond it are counted and left out.
        """


class Followed(Executable, Protocol):
    """An executable whose values can be replaced while it runs."""

    def followed(
        self, inputs: InputSet, known: KnownNumbers, see: See, *, draw: int | None = None, seed: int = 0
    ) -> list[Array]:
        """Returns the outputs of one evaluation; what `see` returns for a node is what the rest of the graph sees."""

    def constant_values(self) -> frozenset[str]:
        """Returns the names of the values that depend on no input."""


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
        is_source: it is the source itself and needs no comparison with it.
    """

    stage: Stage
    name: str
    executable: Executable
    model: Any = None
    path: Path | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)
    is_source: bool = False


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


class Switches(Protocol):
    """An optimizer whose parts (passes, rules, transformers) can be switched off, applied to one right model.

    Attributes:
        names: of the parts, in the order in which they run where they have one. Names that do nothing do no harm.
    """

    names: tuple[str, ...]

    def run(self, off: frozenset[str]) -> Executed:
        """Returns what the optimizer makes of the model with these parts switched off.

        With none off it is what users get: the same model as the plain call makes, or the switches are not usable.

        Raises:
            Exception: whatever the optimizer raises.
        """


@dataclass(frozen=True)
class Executed:
    """The result of an optimizer.

    Attributes:
        model: the `ModelProto` after it, for comparison with the one before; None where it cannot be had.
        run: feeds by the model's input names -> outputs in its own types, for a runtime's own optimizer; None where
            the model itself is to be judged.
    """

    model: Any
    run: Callable[[Mapping[str, Array]], list[Any]] | None = None


class Unseen(Protocol):
    """An operator of the source whose error no output shows."""

    @property
    def number(self) -> int:
        """Its place in the order of execution."""

    @property
    def operator(self) -> str:
        """Its name."""

    @property
    def source(self) -> str:
        """`file.py:LINE`, or ''."""

    @property
    def fingerprint(self) -> Fingerprint:
        """Of what it computes."""


class SourceEngine(Protocol):
    """A subject as the engines see it: what it takes, what it computes, and how well that can be known."""

    @property
    def subject(self) -> Subject:
        """The subject, with the dynamic axes that the user asked for."""

    @property
    def leaves(self) -> Sequence[LeafSpec]:
        """The tensor inputs in the order of an input set's arrays, with the first example's values."""

    @property
    def axes(self) -> Sequence[DynamicAxis]:
        """The axes that may have other sizes."""

    @property
    def given(self) -> Sequence[tuple[Array, ...]]:
        """The further examples."""

    @property
    def weights(self) -> int:
        """How many numbers its weights and constants have."""

    @property
    def computed(self) -> int:
        """How many numbers the operators of one run at the example give; 0 where they are not counted."""

    @property
    def method(self) -> str:
        """How the floor is measured, for the record."""

    @property
    def stand_in(self) -> str | None:
        """The runtime that computes the reference where operators have no float64 kernel, else None."""

    def reference(self, inputs: InputSet, number: int, draws: Draws) -> SourceReference:
        """Returns outputs in float64 with the floors that `draws` noisy runs give.

        Args:
            inputs: one input set.
            number: of the set; noise depends on it and on the seed only.
            draws: noisy runs.

        Raises:
            SourceError: the source itself refuses the inputs.
        """

    def real(self, inputs: InputSet, *, fresh_random: bool) -> tuple[Array, ...]:
        """Returns the outputs of a plain run; with other random numbers than the first run had if asked."""

    def trace(self, inputs: InputSet, *, draws: int, limit_bytes: int) -> TracedRun | None:
        """Returns one run in float64 with the values of all operators; None where there is none.

        Args:
            inputs: one input set.
            draws: noisy runs, for the floors of the values.
            limit_bytes: what all values together may take; those beyond it are counted and left out.
        """

    def unseen(self, inputs: InputSet, threshold: float) -> Sequence[Unseen] | None:
        """Returns the operators that no output shows at this input set; None where this cannot be determined."""

    def known_numbers(self, references: Sequence[SourceReference]) -> KnownNumbers:
        """Returns the numbers that the source holds, after it was run."""

    def kept(self) -> AbstractContextManager[None]:
        """Puts the source's state back after a converter touched it."""

    def notes(self) -> Sequence[tuple[Kind, str]]:
        """Returns what a user should know about the source besides its values (training mode)."""

    def succeeds_otherwise(self, convert: Callable[[], bool]) -> tuple[Kind, str] | None:
        """Returns what is to be said when a failed conversion succeeds under other conditions (without gradients)."""


EngineFactory = Callable[[Subject, int, "Sequence[RequestedAxis]"], SourceEngine]
"""(subject, seed, dynamic axes that the user asked for) -> engine."""


class Converter(Protocol):
    """Turns a subject into an ONNX file in stages.

    Attributes:
        name: as users write it.
        frameworks: of the subjects that it takes.
        plan: (stage, checkpoint) in order; the one that was due when an exception left `convert` is the one that
            crashed.
    """

    name: str
    frameworks: frozenset[str]
    plan: tuple[tuple[Stage, str], ...]

    def convert(self, subject: Subject, options: ConverterOptions) -> Iterator[Checkpoint]:
        """Yields the checkpoints of the plan in order."""

    def switches(self, model: Any, options: ConverterOptions) -> Switches | None:
        """Returns the parts of the converter's optimizer, to be switched off for one model; None where it has none.

        Args:
            model: a `ModelProto` before the optimizer.
            options: as the converter was called with.
        """

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

    @property
    def levels(self) -> tuple[str, ...]:
        """Its optimization levels, the least first; the last one is what users run. One name where it has one."""

    def load(self, path: Path, *, level: str | None = None) -> Session:
        """Returns a session at one of `levels`; the last where none is given."""

    def switches(self, path: Path, level: str | None = None) -> Switches | None:
        """Returns the parts of the runtime's own optimizer, to be switched off for this file; None where it has none.

        Args:
            path: of the file.
            level: one of `levels`; the last where none is given.
        """

    def lacks_kernel(self, error: BaseException) -> str | None:
        """Returns the operator for which the runtime has no kernel where that is what the error says, else None."""

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
    "EngineFactory",
    "Executable",
    "Executed",
    "Followed",
    "NoFloat64Error",
    "Runtime",
    "Session",
    "SourceEngine",
    "SourceReference",
    "StageFailure",
    "Switches",
    "Unseen",
    "Wide",
]
