"""A value of a Python file that is a TensorFlow or Keras model, with the inputs that the file gives."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import replace
from types import FunctionType
from typing import Any

from trueport.adapters.sources.file_import import FileObject
from trueport.adapters.sources.fingerprint import sha256_of_file
from trueport.adapters.sources.input_sets import export_options_of, require_call
from trueport.adapters.sources.registry import SourceRequest
from trueport.adapters.sources.tensorflow_examples import examples_of, has_input_form
from trueport.adapters.sources.tensorflow_source import is_tensorflow
from trueport.adapters.sources.tensorflow_subject import subject_of_tensorflow
from trueport.adapters.sources.wording import described
from trueport.core.errors import UsageError
from trueport.core.subject import Subject

_ABSENT = object()


def recognizes(value: Any) -> bool:
    """Tells whether a value is a Keras model, a tf.function, a concrete function or a tf.Module that can be called."""
    return is_tensorflow(value)


def subject(found: FileObject, built: tuple[Any, ...], request: SourceRequest) -> Subject:
    """Returns the subject of a model, with the inputs that came with it or that the file gives as `inputs`.

    Args:
        found: the name of the file.
        built: the model, and the args and kwargs of a call where it came with them.
        request: what the user asked for.

    Raises:
        UsageError: what was returned with the model is no call, nothing tells what it takes, or inputs do not fit.
        SourceError: the model raises when it is traced.
    """
    where = f"'{found.path.name}:{found.name}'"
    value, args, kwargs = _parts(built, where)
    further = _inputs(found, value)
    call, named = (args, kwargs) if args is not None else _first_call(further)
    made = subject_of_tensorflow(
        value,
        call,
        named,
        None if args is not None else further,
        name=f"{found.path.stem}:{found.name}",
        sha256=sha256_of_file(found.path),
        request=request,
        where=where,
        export_options=_export_options(found),
    )
    if args is None or further is None or request.inputs is not None:
        return made
    others = examples_of(further, made.model, f"`inputs` of {where}")
    return replace(made, examples=(*made.examples, *(replace(e, label=f"inputs[{i}]") for i, e in enumerate(others))))


def _parts(built: tuple[Any, ...], where: str) -> tuple[Any, tuple[Any, ...] | None, dict[str, Any]]:
    if len(built) == 1:
        return built[0], None, {}
    if len(built) not in (2, 3):
        raise UsageError(
            f"expected {where} to return a model, (model, args) or (model, args, kwargs); got {described(built)}"
        )
    args, kwargs = (*built[1:], {})[:2]
    if isinstance(args, list):  # as tf.function's own signatures are written
        args = tuple(args)
    if isinstance(args, Mapping) and not kwargs:  # one structured argument
        args = (args,)
    require_call(args, kwargs, where)
    return built[0], args, dict(kwargs)


def _first_call(further: Any) -> tuple[tuple[Any, ...] | None, dict[str, Any]]:
    """Returns the call that the first of the file's input sets stands for."""
    first = further[0] if isinstance(further, list) and further else further
    if isinstance(first, tuple):
        return first, {}
    if isinstance(first, Mapping):
        return (), {str(key): value for key, value in first.items()}
    return (None, {}) if first is None or isinstance(first, list) else ((first,), {})


def _inputs(found: FileObject, value: Any) -> Any:
    """Returns the `inputs` of NAME, else of the file, or None; a Keras model's own `inputs` are its layers'."""
    own = inspect.getattr_static(found.value, "inputs", _ABSENT) if found.value is not value else _ABSENT
    if own is not _ABSENT and (isinstance(found.value, FunctionType) or has_input_form(own)):
        return own
    held = vars(found.module).get("inputs")
    return None if held is found.value else held


def _export_options(found: FileObject) -> dict[str, Any]:
    value = vars(found.module).get("export_options")
    if isinstance(found.value, FunctionType):
        value = getattr(found.value, "export_options", value)
    if value is None or value is found.value:
        return {}
    return export_options_of(value, found.path.name)
