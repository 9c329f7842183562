"""Runtimes by name; each adapter is imported when it is used."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from trueport.adapters.protocols import Runtime
from trueport.core.errors import MissingToolError, UsageError

_ADAPTERS = {
    "onnxruntime": ("trueport.adapters.runtimes.onnxruntime:OnnxRuntime", "pip install 'trueport[onnxruntime]'"),
    "onnx-reference": ("trueport.adapters.runtimes.onnx_reference:OnnxReference", "pip install onnx"),
}


def names() -> tuple[str, ...]:
    """Returns the names of all runtimes, installed or not."""
    return tuple(_ADAPTERS)


def runtime(name: str, **settings: Any) -> Runtime:
    """Returns the runtime of this name with its settings (`provider`, `threads`).

    Raises:
        UsageError: there is no such runtime, or it has no such provider.
        MissingToolError: it is not installed.
    """
    if name not in _ADAPTERS:
        raise UsageError(f"no runtime is called '{name}'; there are: {', '.join(_ADAPTERS)}")
    target, install = _ADAPTERS[name]
    module, attribute = target.split(":")
    try:
        made: Runtime = getattr(import_module(module), attribute)(**settings)
    except ImportError as error:
        raise MissingToolError(name, install) from error
    return made
