"""A value of a Python file that is an ONNX `ModelProto`, with the inputs that the file gives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import onnx

from trueport.adapters.sources.file_import import FileObject
from trueport.adapters.sources.fingerprint import sha256_of_file
from trueport.adapters.sources.onnx_subject import subject_of_onnx
from trueport.adapters.sources.registry import SourceRequest
from trueport.adapters.sources.wording import described
from trueport.core.errors import UsageError
from trueport.core.subject import Subject

_OPTIONS = ("target_opset",)


def recognizes(value: Any) -> bool:
    """Tells whether a value is an ONNX model."""
    return isinstance(value, onnx.ModelProto)


def subject(found: FileObject, built: tuple[Any, ...], request: SourceRequest) -> Subject:
    """Returns the subject of a model, with the feeds that came with it or that the file gives as `inputs`.

    Args:
        found: the name of the file; an attribute `target_opset` of it is what a version converter converts to.
        built: the model, and its feeds where it came with some.
        request: what the user asked for.

    Raises:
        UsageError: more than model and feeds was returned, or the feeds do not fit.
    """
    where = f"'{found.path.name}:{found.name}'"
    if len(built) > 2:
        raise UsageError(f"expected {where} to return a ModelProto or (ModelProto, feeds), got {described(built)}")
    feeds = built[1] if len(built) == 2 else getattr(found.value, "inputs", getattr(found.module, "inputs", None))
    if len(built) == 2 and not isinstance(feeds, Mapping | tuple | list):
        raise UsageError(f"expected the feeds that {where} returns to be a dict by input name, got {described(feeds)}")
    options = {name: getattr(found.value, name) for name in _OPTIONS if hasattr(found.value, name)}
    opset = options.get("target_opset", 1)
    if not isinstance(opset, int) or isinstance(opset, bool) or opset < 1:
        raise UsageError(f"expected `target_opset` of {where} to be an opset number, got {described(opset)}")
    return subject_of_onnx(
        built[0],
        feeds,
        name=f"{found.path.stem}:{found.name}",
        sha256=sha256_of_file(found.path),
        request=request,
        folder=found.path.parent,
        export_options=options,
        where=f"the feeds of {where}",
    )
