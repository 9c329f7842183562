"""`file.py:NAME`: a model of any framework, a class, or a function that builds one.

What the value is decides which framework's module makes a subject of it; only frameworks that the file itself has
imported are asked.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from typing import Any, Protocol, cast

from trueport.adapters.sources.file_import import FileObject, folder_importable, object_of_file, source_error
from trueport.adapters.sources.global_state import preserved_global_state
from trueport.adapters.sources.registry import SourceRequest
from trueport.adapters.sources.tensorflow_setup import quiet_environment
from trueport.adapters.sources.wording import described, without_annotations
from trueport.core.errors import UsageError
from trueport.core.subject import Subject

_HERE = "trueport.adapters.sources"
_VALUES = {
    "torch": f"{_HERE}.torch_value",
    "tensorflow": f"{_HERE}.tensorflow_value",
    "onnx": f"{_HERE}.onnx_value",
}
_KINDS = (
    "an nn.Module instance, a Keras model, a tf.function with a signature, an ONNX ModelProto, a class, or a function "
    "returning a model, (model, args) or (model, args, kwargs); for ONNX (ModelProto, feeds)"
)
_RETURNED = (
    "a model, (model, args) or (model, args, kwargs), the model being an nn.Module, a Keras model, a tf.function or an "
    "ONNX ModelProto"
)


class ValueKind(Protocol):
    """What the module of a framework provides."""

    def recognizes(self, value: Any) -> bool:
        """Tells whether a value is a model of this framework; nothing is called."""

    def subject(self, found: FileObject, built: tuple[Any, ...], request: SourceRequest) -> Subject:
        """Returns the subject of a model and of what was returned with it."""


def load(request: SourceRequest) -> Subject:
    """Returns the subject of a Python file.

    Raises:
        UsageError: file or name are missing, the name is of no accepted kind, or there are no usable inputs.
        SourceError: the user's code raised.
    """
    quiet_environment()
    found = object_of_file(request.spec, default_name="model", seed=request.seed)
    # A model can be called, so it must be recognized before anything is.
    kind = _kind_of(found.value)
    if kind is not None:
        return kind.subject(found, (found.value,), request)
    where = f"'{found.path.name}:{found.name}'"
    made = found.value
    if not isinstance(made, tuple):
        if not callable(made):
            raise UsageError(f"expected {where} to be {_KINDS}; got {described(made)}")
        made = _called(found, where, request.seed)
    built = made if isinstance(made, tuple) and made else (made,)
    kind = _kind_of(built[0])
    if kind is None:
        what = f"be {_KINDS}" if isinstance(found.value, tuple) else f"return {_RETURNED}"
        raise UsageError(f"expected {where} to {what}; got {described(made)}")
    return kind.subject(found, built, request)


def _kind_of(value: Any) -> ValueKind | None:
    for framework, module in _VALUES.items():
        if framework in sys.modules:
            kind = cast(ValueKind, importlib.import_module(module))
            if kind.recognizes(value):
                return kind
    return None


def _called(found: FileObject, where: str, seed: int) -> Any:
    _check_no_arguments(found.value, where)
    build: Any = found.value
    try:
        with folder_importable(found.path.parent), preserved_global_state(seed):
            return build()
    except (Exception, SystemExit) as error:
        raise source_error(found.path, f"calling {found.name} of", error) from error


def _check_no_arguments(value: Any, where: str) -> None:
    try:
        signature = inspect.signature(value)
        signature.bind()
    except ValueError:
        return  # no readable signature: the call itself will tell
    except TypeError:
        raise UsageError(
            f"{where} is called without arguments, but takes {without_annotations(signature)}; "
            "name a function without arguments that builds the model"
        ) from None
