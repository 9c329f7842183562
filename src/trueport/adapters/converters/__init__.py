"""Converters by name; each adapter is imported when it is used."""

from __future__ import annotations

from importlib import import_module

from trueport.adapters.protocols import Converter
from trueport.core.errors import MissingToolError, UsageError

_ADAPTERS = {
    "torch-dynamo": ("trueport.adapters.converters.torch_dynamo:TorchDynamo", "pip install 'trueport[torch]'"),
    "torch-script": ("trueport.adapters.converters.torch_script:TorchScript", "pip install 'trueport[torch]'"),
}


def names() -> tuple[str, ...]:
    """Returns the names of all converters, installed or not."""
    return tuple(_ADAPTERS)


def converter(name: str) -> Converter:
    """Returns the converter of this name.

    Raises:
        UsageError: there is no such converter.
        MissingToolError: what it needs is not installed.
    """
    if name not in _ADAPTERS:
        raise UsageError(f"no converter is called '{name}'; there are: {', '.join(_ADAPTERS)}")
    target, install = _ADAPTERS[name]
    module, attribute = target.split(":")
    try:
        made: Converter = getattr(import_module(module), attribute)()
    except ImportError as error:
        raise MissingToolError(name, install) from error
    return made
