"""The kinds of sources, in the order in which they are asked; a kind is added by one entry."""

from __future__ import annotations

import importlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, cast

from trueport.core.errors import UsageError
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
    """

    name: str
    form: str
    pattern: str
    module: str

    def accepts(self, spec: str) -> bool:
        """Tells whether `spec` is of this kind, without looking at any file."""
        return re.fullmatch(self.pattern, spec, re.IGNORECASE | re.DOTALL) is not None

    def load(self, request: SourceRequest) -> Subject:
        """Imports the module of this kind and returns what it loads."""
        return cast(SourceLoader, importlib.import_module(self.module)).load(request)


_HERE = "trueport.adapters.sources"

SOURCE_KINDS: tuple[SourceKind, ...] = (
    SourceKind("zoo", "zoo:hf/NAME", r"zoo:.*", f"{_HERE}.zoo.source"),
    SourceKind("python file", "file.py:NAME", r".*\.py(:.*)?", f"{_HERE}.python_file"),
    SourceKind("exported program", "model.pt2", r".*\.pt2", f"{_HERE}.torch_program"),
    SourceKind(
        "pickle or weights", "model.pt with --trust-pickle", r".*\.(pt|pth|pkl|pickle|bin|ckpt|safetensors)",
        f"{_HERE}.refused",
    ),
)  # fmt: skip


def source_kind(spec: str) -> SourceKind:
    """Returns the kind of `spec`.

    Raises:
        UsageError: no kind accepts it; the message lists the forms that are accepted.
    """
    for kind in SOURCE_KINDS:
        if kind.accepts(spec):
            return kind
    forms = ", ".join(kind.form for kind in SOURCE_KINDS)
    raise UsageError(f"expected a model as one of: {forms}; got '{spec}', which has none of these forms{_hint(spec)}")


def _hint(spec: str) -> str:
    if spec.lower().endswith(".onnx"):
        return "; an ONNX file is the converted side: give it with --candidate and its source as MODEL"
    if spec.lower().startswith("hf/"):
        return f"; did you mean zoo:{spec}?"
    return ""
