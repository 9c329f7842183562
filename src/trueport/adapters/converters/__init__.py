"""Converters by name; each adapter is imported when it is used."""

from __future__ import annotations

from trueport.adapters.plugins import adapter, every_name
from trueport.adapters.protocols import Converter

_TORCH = "pip install 'trueport[torch]'"
_OPTIMIZERS = "pip install 'trueport[optimizers]'"
_HERE = "trueport.adapters.converters"
_ADAPTERS = {
    "torch-dynamo": (f"{_HERE}.torch_dynamo:TorchDynamo", _TORCH),
    "torch-script": (f"{_HERE}.torch_script:TorchScript", _TORCH),
    "tf2onnx": (f"{_HERE}.tf2onnx:Tf2Onnx", "pip install 'trueport[tensorflow]'"),
    "onnxscript-optimizer": (f"{_HERE}.onnxscript_optimizer:OnnxScriptOptimizer", _OPTIMIZERS),
    "onnxsim": (f"{_HERE}.onnxsim:OnnxSim", _OPTIMIZERS),
    "onnxslim": (f"{_HERE}.onnxslim:OnnxSlim", _OPTIMIZERS),
    "onnxoptimizer": (f"{_HERE}.onnxoptimizer:OnnxOptimizer", _OPTIMIZERS),
    "onnx-version-converter": (f"{_HERE}.onnx_version_converter:OnnxVersionConverter", "pip install onnx"),
}
_FRAMEWORKS = {
    "torch": ("torch-dynamo", "torch-script"),
    "tensorflow": ("tf2onnx",),
    "onnx": ("onnxscript-optimizer", "onnxsim", "onnxslim", "onnxoptimizer", "onnx-version-converter"),
}
_DEFAULTS: dict[str, tuple[str | None, ...]] = {"torch": ("torch-dynamo",), "tensorflow": ("tf2onnx",)}
GROUP = "trueport.converters"
COMMAND = "cmd:"


def names() -> tuple[str, ...]:
    """Returns the names of all converters, installed or not, those of other packages too."""
    return every_name(_ADAPTERS, GROUP)


def names_for(framework: str) -> tuple[str, ...]:
    """Returns our own converters that take models of a framework."""
    return _FRAMEWORKS.get(framework, ())


def defaults(framework: str) -> tuple[str | None, ...]:
    """Returns what is checked where the user names no converter; None: the model is run as it is."""
    return _DEFAULTS.get(framework, (None,))


def converter(name: str) -> Converter:
    """Returns the converter of this name; `cmd:tool {in} {out}` is a command of the user's own.

    Raises:
        UsageError: there is no such converter.
        MissingToolError: what it needs is not installed.
    """
    if name.startswith(COMMAND):
        from trueport.adapters.converters.command import Command

        command: Converter = Command(name.removeprefix(COMMAND))
        return command
    hint = ", or your own command as 'cmd:tool {in} {out}'"
    made: Converter = adapter("converter", name, _ADAPTERS, GROUP, hint)()
    return made
