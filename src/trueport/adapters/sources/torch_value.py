"""A value of a Python file that is an `nn.Module`, with the inputs that the file gives."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import replace
from types import FunctionType
from typing import Any

from torch import nn

from trueport.adapters.sources.file_import import FileObject
from trueport.adapters.sources.fingerprint import sha256_of_file
from trueport.adapters.sources.input_forms import examples_from_value, has_input_form
from trueport.adapters.sources.input_sets import export_options_of, require_call
from trueport.adapters.sources.loaded import LoadedSource, subject_from
from trueport.adapters.sources.registry import SourceRequest
from trueport.adapters.sources.wording import described
from trueport.core.errors import UsageError
from trueport.core.subject import Example, Subject

_ABSENT = object()


def recognizes(value: Any) -> bool:
    """Tells whether a value is a module."""
    return isinstance(value, nn.Module)


def subject(found: FileObject, built: tuple[Any, ...], request: SourceRequest) -> Subject:
    """Returns the subject of a module; it keeps the mode (`train` or `eval`) in which it comes.

    Args:
        found: the name of the file, which has or had attributes of ours.
        built: the module, and what was returned with it.
        request: what the user asked for.

    Raises:
        UsageError: what was returned with the module is no call, or there are no usable inputs.
    """
    module, returned = _parts(built, f"'{found.path.name}:{found.name}'")
    owners = [found.value, module]
    examples = _examples(found, owners, returned)
    shapes = _attribute("dynamic_shapes", owners, found)
    loaded = LoadedSource(
        name=f"{found.path.stem}:{found.name}",
        sha256=sha256_of_file(found.path),
        model=module,
        examples=examples,
        dynamic_shapes=None if shapes is _ABSENT else shapes,
        export_options=_export_options(_attribute("export_options", owners, found), found),
    )
    return subject_from(loaded, request)


def _examples(found: FileObject, owners: list[Any], returned: Example | None) -> tuple[Example, ...]:
    """Returns the example that came with the module, then the input sets of NAME; without both those of the file."""
    where = f"`inputs` of '{found.path.name}:{found.name}'"
    own = _own_attribute("inputs", owners)
    if (
        isinstance(own, list | tuple | Mapping)
        and not isinstance(found.value, FunctionType)
        and not has_input_form(own)
    ):
        own = _ABSENT  # a model may keep something else under this name
    if returned is not None:
        further = () if own is _ABSENT else examples_from_value(own, where)
        return (returned, *(replace(e, label=f"inputs[{index}]") for index, e in enumerate(further)))
    inputs = _attribute("inputs", [], found) if own is _ABSENT else own
    return () if inputs is _ABSENT else examples_from_value(inputs, where)


def _parts(built: tuple[Any, ...], where: str) -> tuple[nn.Module, Example | None]:
    if len(built) == 1:
        return built[0], None
    if len(built) not in (2, 3):
        raise UsageError(f"expected {where} to return a module, (module, args) or (module, args, kwargs); "
                         f"got {described(built)}")  # fmt: skip
    module, args, kwargs = (*built, {})[:3]
    require_call(args, kwargs, where)
    return module, Example(args, dict(kwargs))


def _attribute(name: str, owners: list[Any], found: FileObject) -> Any:
    """Returns the attribute of the first owner that has it, else that of the file."""
    own = _own_attribute(name, owners)
    if own is not _ABSENT:
        return own
    value = vars(found.module).get(name, _ABSENT)
    return _ABSENT if value is found.value else value


def _own_attribute(name: str, owners: list[Any]) -> Any:
    """Returns the attribute of the first owner that has it as a plain value.

    A module may have a layer, a parameter or a method of this name: that is a part of the model, not our attribute.
    """
    for owner in owners:
        if _is_plain(inspect.getattr_static(owner, name, _ABSENT)):
            return getattr(owner, name)
    return _ABSENT


def _is_plain(static: Any) -> bool:
    parts_of_a_model = (property, nn.Module, nn.Parameter, classmethod, staticmethod)
    return static is not _ABSENT and not isinstance(static, parts_of_a_model) and not inspect.isroutine(static)


def _export_options(value: Any, found: FileObject) -> dict[str, Any]:
    if value is _ABSENT or value is None:
        return {}
    return export_options_of(value, found.path.name)
