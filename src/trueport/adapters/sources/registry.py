"""The kinds of sources, in the order in which they are asked; a kind is added by one entry.

Other packages announce theirs as entry points of the group `trueport.sources`, each a `SourceKind`, asked last.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, cast

from trueport.adapters.plugins import adapter, announced
from trueport.core.errors import ToolError, UsageError
from trueport.core.subject import Subject


@dataclass(frozen=True)
class SourceRequest:
    """What the user asked for; see `load_subject` for the fields."""

    spec: str
    trust_pickle: bool
    inputs: str | None
    input_shapes: Mapping[str, Sequence[int]]
    seed: int


class SourceLoader(Protocol):
    """What the module of a source kind provides."""

    def load(self, request: SourceRequest) -> Subject:
        """Returns the subject or raises a `UsageError`."""
        ...


@dataclass(frozen=True)
class SourceKind:
    """One kind of source.

    Attributes:
        name: for people.
        form: how the user writes it.
        pattern: the specifications that are of this kind; matched without regard to case.
        module: where its `load` is; imported when used, because it imports a framework.
        holds: for a folder, the files (as glob patterns) that it must hold to be of this kind; empty for others.
    """

    name: str
    form: str
    pattern: str
    module: str
    holds: tuple[str, ...] = ()

    def accepts(self, spec: str) -> bool:
        """Tells whether `spec` is of this kind by its form; of folders, by the names of what they hold."""
        if re.fullmatch(self.pattern, spec, re.IGNORECASE | re.DOTALL) is None:
            return False
        folder = Path(spec)
        return not self.holds or (folder.is_dir() and all(any(folder.glob(pattern)) for pattern in self.holds))

    def load(self, request: SourceRequest) -> Subject:
        """Imports the module of this kind and returns what it loads."""
        return cast(SourceLoader, importlib.import_module(self.module)).load(request)


_HERE = "trueport.adapters.sources"

SOURCE_KINDS: tuple[SourceKind, ...] = (
    SourceKind("zoo", "zoo:FRAMEWORK/NAME", r"zoo:.*", f"{_HERE}.zoo.source"),
    SourceKind("python file", "file.py:NAME", r".*\.py(:.*)?", f"{_HERE}.python_file"),
    SourceKind("exported program", "model.pt2", r".*\.pt2", f"{_HERE}.torch_program"),
    SourceKind("ONNX file", "model.onnx", r".*\.onnx", f"{_HERE}.onnx_file"),
    SourceKind("Keras file", "model.keras", r".*\.(keras|h5)", f"{_HERE}.tensorflow_file"),
    SourceKind("SavedModel", "a SavedModel folder", r".+", f"{_HERE}.tensorflow_file", ("saved_model.pb",)),
    SourceKind("Hugging Face model", "a folder with config.json and *.safetensors", r".+",
               f"{_HERE}.huggingface_folder", ("config.json", "*.safetensors")),
    SourceKind(
        "pickle or weights", "model.pt with --trust-pickle", r".*\.(pt|pth|pkl|pickle|bin|ckpt|safetensors)",
        f"{_HERE}.refused",
    ),
)  # fmt: skip


GROUP = "trueport.sources"


def source_kind(spec: str) -> SourceKind:
    """Returns the kind of `spec`.

    Raises:
        UsageError: no kind accepts it; the message lists the forms that are accepted.
        ToolError: another package announces a kind that cannot be loaded.
    """
    for kind in SOURCE_KINDS:
        if kind.accepts(spec):
            return kind
    others = _announced_kinds()
    for kind in others:
        if kind.accepts(spec):
            return kind
    forms = ", ".join(kind.form for kind in (*SOURCE_KINDS, *others))
    raise UsageError(f"expected a model as one of: {forms}; got '{spec}', which has none of these forms{_hint(spec)}")


def _announced_kinds() -> list[SourceKind]:
    """Returns the kinds of other packages."""
    kinds = []
    for name in announced(GROUP):
        kind = adapter("source", name, {}, GROUP)
        if not isinstance(kind, SourceKind):
            came = type(kind).__name__
            raise ToolError(f"expected the entry point '{name}' of {GROUP} to be a SourceKind, got {came}")
        kinds.append(kind)
    return kinds


def _hint(spec: str) -> str:
    if Path(spec).is_dir():
        return "; the folder holds neither saved_model.pb nor config.json with *.safetensors"
    if spec.lower().startswith("hf/"):
        return f"; did you mean zoo:{spec}?"
    return ""
