"""What a user may ask of a check, as frozen values with their real defaults."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum

from trueport.core.errors import UsageError


@dataclass(frozen=True)
class DynamicAxis:
    """One axis of one input that may have other sizes than the example's.

    Attributes:
        input: name of the input.
        axis: counted from 0.
        symbol: axes with the same symbol change together.
        minimum: least size, inclusive.
        maximum: largest size, inclusive, or None for no limit.
    """

    input: str
    axis: int
    symbol: str
    minimum: int = 1
    maximum: int | None = None

    def __post_init__(self) -> None:
        """Raises `UsageError` for an axis or a range that cannot be."""
        if self.axis < 0:
            raise UsageError(f"expected the axis of input '{self.input}' to be counted from 0, got {self.axis}")
        if self.minimum < 0 or (self.maximum is not None and self.maximum < self.minimum):
            raise UsageError(
                f"expected a range MIN-MAX with 0 <= MIN <= MAX for '{self.symbol}' of input '{self.input}', "
                f"got {self.minimum}-{'' if self.maximum is None else self.maximum}"
            )

    def __str__(self) -> str:
        """Returns it as `--dynamic` takes it."""
        unbounded = (self.minimum, self.maximum) == (1, None)
        bounds = "" if unbounded else f":{self.minimum}-{'' if self.maximum is None else self.maximum}"
        return f"{self.input}:{self.axis}={self.symbol}{bounds}"


class ToleranceKind(StrEnum):
    """Where the tolerance comes from."""

    MEASURED = "measured"
    FIXED = "fixed"


@dataclass(frozen=True)
class Tolerance:
    """The measured floor, or the fixed rule `|a - b| <= atol + rtol |b|` for comparison with other tools."""

    kind: ToleranceKind = ToleranceKind.MEASURED
    rtol: float = 0.0
    atol: float = 0.0

    def __post_init__(self) -> None:
        """Raises `UsageError` for a tolerance that would accept anything, or nothing on purpose."""
        for name, value in (("rtol", self.rtol), ("atol", self.atol)):
            # An infinite or undefined tolerance would let every wrong result pass.
            if not (math.isfinite(value) and value >= 0):
                raise UsageError(f"expected {name} to be a finite number >= 0, got {value}")
        if self.kind is ToleranceKind.MEASURED and (self.rtol or self.atol):
            raise UsageError("a measured tolerance takes no rtol and no atol")

    def __str__(self) -> str:
        """Returns it as `--tolerance` takes it."""
        return "measured" if self.kind is ToleranceKind.MEASURED else f"rtol={self.rtol!r},atol={self.atol!r}"


@dataclass(frozen=True)
class CheckOptions:
    """Everything that decides a check besides the model. JSON-able; `to_arguments` gives it back as a command line.

    Attributes:
        candidate: an ONNX file that exists already; then no converter runs.
        name_map: input of the source -> input of the candidate.
        converters: by name; none for the default of the source's framework (an ONNX file is run as it is).
        runtimes: by name.
        provider: execution provider of the runtime; None for the CPU one.
        threads: of the source and of the runtimes.
        opset: None for the converter's default.
        inputs: `file.npz` or `file.py[:NAME]`, in place of the source's own example.
        input_shapes: name -> sizes, drawn in place of the example's.
        dynamic: axes to be converted as dynamic and tried at several sizes.
        samples: redrawn input sets besides the example and the edge regimes.
        seed: of every draw.
        nonfinite: whether a difference that only non-finite inputs show changes the verdict.
        locate: whether a failed check is followed by a search for the operator, pass or kernel.
        timeout_s: wall-clock limit of one check, or None.
        memory_mb: limit for the resident size of the worker's process tree, or None.
        isolate: whether foreign code runs in a process of its own.
        tolerance: measured, or fixed.
        metric: `file.py:NAME` of the user's own task metric; needs `data`.
        data: the file on which it is computed.
        save: folder for the ONNX test case, or None.
        trust_pickle: whether the user allows a file to run code when it is loaded.
    """

    candidate: str | None = None
    name_map: dict[str, str] = field(default_factory=dict)
    converters: tuple[str, ...] = ()
    runtimes: tuple[str, ...] = ("onnxruntime",)
    provider: str | None = None
    threads: int = 1
    opset: int | None = None
    inputs: str | None = None
    input_shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    dynamic: tuple[DynamicAxis, ...] = ()
    samples: int = 3
    seed: int = 0
    nonfinite: bool = False
    locate: bool = True
    timeout_s: float | None = 600.0
    memory_mb: int | None = 8192
    isolate: bool = True
    tolerance: Tolerance = Tolerance()
    metric: str | None = None
    data: str | None = None
    save: str | None = None
    trust_pickle: bool = False

    def __post_init__(self) -> None:
        """Raises `UsageError` for values out of range and for options that contradict each other."""
        for name, least in (("threads", 1), ("samples", 1), ("seed", 0), ("opset", 1), ("memory_mb", 1)):
            value = getattr(self, name)
            if value is not None and value < least:
                raise UsageError(f"expected {name} to be at least {least}, got {value}")
        if self.timeout_s is not None and not (math.isfinite(self.timeout_s) and self.timeout_s > 0):
            raise UsageError(f"expected timeout_s to be a finite number of seconds > 0, got {self.timeout_s}")
        if not self.runtimes:
            raise UsageError("expected at least one runtime, got none")
        if self.candidate is None and self.name_map:
            raise UsageError("a map of input names is for a candidate, and none was given")
        if (self.metric is None) != (self.data is None):
            raise UsageError("a metric and the data that it is computed on must be given together")
        self._check_dynamic()

    def _check_dynamic(self) -> None:
        seen: set[tuple[str, int]] = set()
        ranges: dict[str, DynamicAxis] = {}
        for axis in self.dynamic:
            if (axis.input, axis.axis) in seen:
                raise UsageError(f"axis {axis.axis} of input '{axis.input}' was made dynamic twice; name it once")
            seen.add((axis.input, axis.axis))
            first = ranges.setdefault(axis.symbol, axis)
            if (first.minimum, first.maximum) != (axis.minimum, axis.maximum):
                raise UsageError(f"the symbol '{axis.symbol}' was given two ranges: '{first}' and '{axis}'")

    def to_arguments(self) -> list[str]:
        """Returns the arguments of `trueport check` that give these options; what is a default is left out."""
        return list(self._arguments())

    def _arguments(self) -> Iterator[str]:
        default = CheckOptions()
        for option, name in _VALUES.items():
            value = getattr(self, name)
            if value != getattr(default, name) and value is not None:
                yield from (option, ",".join(value) if isinstance(value, tuple) else str(value))
        for source, candidate in self.name_map.items():
            yield from ("--map", f"{source}={candidate}")
        for name, shape in self.input_shapes.items():
            yield from ("--input-shape", f"{name}:[{','.join(map(str, shape))}]")
        for axis in self.dynamic:
            yield from ("--dynamic", str(axis))
        for flag, given in (
            ("--nonfinite", self.nonfinite),
            ("--no-locate", not self.locate),
            ("--no-isolate", not self.isolate),
            ("--trust-pickle", self.trust_pickle),
        ):
            if given:
                yield flag
        if self.timeout_s is None:
            yield from ("--timeout", "none")
        if self.memory_mb is None:
            yield from ("--memory-mb", "none")


_VALUES = {
    "--candidate": "candidate",
    "--converter": "converters",
    "--runtime": "runtimes",
    "--provider": "provider",
    "--threads": "threads",
    "--opset": "opset",
    "--inputs": "inputs",
    "--samples": "samples",
    "--seed": "seed",
    "--timeout": "timeout_s",
    "--memory-mb": "memory_mb",
    "--tolerance": "tolerance",
    "--metric": "metric",
    "--data": "data",
    "--save": "save",
}
"""Option of the command line -> the field that it sets, for options with one value."""
