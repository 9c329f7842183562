"""The model under test, whatever its framework: what it is, its example, and what may vary."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Example:
    """Arguments of one call of the source, in the source framework's own values."""

    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    label: str = "example"


@dataclass(frozen=True)
class Subject:
    """A model, example inputs, dynamic dimensions and origin.

    Attributes:
        name: short name for people.
        framework: `torch`, `onnx` or `tensorflow`; it decides how the source is run and which converters take it.
        origin: what the user named: `file.py:NAME`, `model.pt2`, `model.onnx`, `zoo:hf/NAME`, `<object>`.
        sha256: content of the file that defines it, or of the parameters where there is no file.
        model: the framework's object (an `nn.Module`; for a `.pt2` file the program's own module; a `ModelProto`).
        examples: at least one; the first is the one the converter sees.
        dynamic_shapes: as `torch.export.export` takes it, or None.
        export_options: further options of the exporter.
        program: the `ExportedProgram` where the source is one, else None.
        path: the file of an ONNX source, or None where it was made in memory.
        larger: yields other examples, for a source that refuses the drawn one because of its guessed sizes; None where
            the examples were given.
        engine: how to run it, for sources of third parties: called as an `EngineFactory`, it returns a
            `SourceEngine`; None for the engine of the framework.
    """

    name: str
    framework: str
    origin: str
    sha256: str
    model: Any
    examples: tuple[Example, ...]
    dynamic_shapes: Any = None
    export_options: Mapping[str, Any] = field(default_factory=dict)
    program: Any = None
    path: Path | None = None
    larger: Callable[[], Iterable[tuple[Example, ...]]] | None = None
    engine: Callable[[Subject, int, Any], Any] | None = None
