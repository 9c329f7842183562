"""`file.py:NAME`: a module, a class, or a function that builds one."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import replace
from types import FunctionType
from typing import Any

from torch import nn

from trueport.adapters.sources.file_import import FileObject, folder_importable, object_of_file, source_error
from trueport.adapters.sources.fingerprint import sha256_of_file
from trueport.adapters.sources.global_state import preserved_global_state
from trueport.adapters.sources.input_forms import examples_from_value, has_input_form
from trueport.adapters.sources.loaded import LoadedSource, subject_from
from trueport.adapters.sources.registry import SourceRequest
from trueport.adapters.sources.torch_inputs import without_annotations
from trueport.adapters.sources.wording import described
from trueport.core.errors import UsageError
from trueport.core.subject import Example, Subject

_KINDS = "an nn.Module instance, a class, or a function returning a module, (module, args) or (module, args, kwargs)"
_ABSENT = object()


def load(request: SourceRequest) -> Subject:
    """Returns the subject of a Python file; the module keeps the mode (`train` or `eval`) in which it comes.

    Raises:
        UsageError: file or name are missing, the name is of no accepted kind, or there are no usable inputs.
        SourceError: the user's code raised.
    """
    found = object_of_file(request.spec, default_name="model", seed=request.seed)
    module, returned = _module_and_example(found, request.seed)
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


def _module_and_example(found: FileObject, seed: int) -> tuple[nn.Module, Example | None]:
    value = found.value
    # A module can be called, so it must be recognized before anything is.
    if isinstance(value, nn.Module):
        return value, None
    where = f"'{found.path.name}:{found.name}'"
    if not callable(value):
        raise UsageError(f"expected {where} to be {_KINDS}; got {described(value)}")
    _check_no_arguments(value, where)
    try:
        with folder_importable(found.path.parent), preserved_global_state(seed):
            result = value()
    except (Exception, SystemExit) as error:
        raise source_error(found.path, f"calling {found.name} of", error) from error
    return _parts(result, where)


def _check_no_arguments(value: Any, where: str) -> None:
    try:
        signature = inspect.signature(value)
        signature.bind()
    except ValueError:
        return  # no readable signature: the call itself will tell
    except TypeError:
        raise UsageError(
            f"{where} is called without arguments, but takes {without_annotations(signature)}; "
            "name a function without arguments that builds the module"
        ) from None


def _parts(result: Any, where: str) -> tuple[nn.Module, Example | None]:
    if isinstance(result, nn.Module):
        return result, None
    if not isinstance(result, tuple) or len(result) not in (2, 3) or not isinstance(result[0], nn.Module):
        raise UsageError(f"expected {where} to return a module, (module, args) or (module, args, kwargs); "
                         f"got {described(result)}")  # fmt: skip
    module, args, kwargs = (*result, {})[:3]
    if not isinstance(args, tuple):
        raise UsageError(f"expected the args that {where} returns to be a tuple, got {described(args)}; write (x,)")
    if not isinstance(kwargs, Mapping) or not all(isinstance(key, str) for key in kwargs):
        raise UsageError(
            f"expected the kwargs that {where} returns to be a dict by parameter name, got {described(kwargs)}"
        )
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
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise UsageError(
            f"expected `export_options` of '{found.path.name}' to be a dict of options by name, got {described(value)}"
        )
    return dict(value)
