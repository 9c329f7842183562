"""Runtimes by name; each adapter is imported when it is used."""

from __future__ import annotations

from typing import Any

from trueport.adapters.plugins import adapter, every_name
from trueport.adapters.protocols import Runtime

_HERE = "trueport.adapters.runtimes"
_ADAPTERS = {
    "onnxruntime": (f"{_HERE}.onnxruntime:OnnxRuntime", "pip install 'trueport[onnxruntime]'"),
    "onnx-reference": (f"{_HERE}.onnx_reference:OnnxReference", "pip install onnx"),
    "openvino": (f"{_HERE}.openvino:OpenVino", "pip install 'trueport[openvino]'"),
}
GROUP = "trueport.runtimes"


def names() -> tuple[str, ...]:
    """Returns the names of all runtimes, installed or not, those of other packages too."""
    return every_name(_ADAPTERS, GROUP)


def runtime(name: str, **settings: Any) -> Runtime:
    """Returns the runtime of this name with its settings (`provider`, `threads`).

    Raises:
        UsageError: there is no such runtime, or it has no such provider.
        MissingToolError: it is not installed.
    """
    made: Runtime = adapter("runtime", name, _ADAPTERS, GROUP)(**settings)
    return made
