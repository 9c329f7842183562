"""Which engine runs a source, by framework; each is imported when it is used."""

from __future__ import annotations

from collections.abc import Sequence

from trueport.adapters.plugins import imported
from trueport.adapters.protocols import EngineFactory, SourceEngine
from trueport.core.errors import UsageError
from trueport.core.options import DynamicAxis
from trueport.core.subject import Subject

_ENGINES = {
    "torch": ("trueport.adapters.float64.torch.source:TorchSource", "pip install 'trueport[torch]'"),
    "onnx": ("trueport.adapters.float64.onnx_source:OnnxSource", "pip install onnx"),
    "tensorflow": (
        "trueport.adapters.float64.tensorflow.source:TensorFlowEngine",
        "pip install 'trueport[tensorflow]'",
    ),
}


def source_engine(subject: Subject, *, seed: int, dynamic: Sequence[DynamicAxis]) -> SourceEngine:
    """Returns what runs the subject.

    Args:
        subject: any; one with an `engine` of its own brings what runs it.
        seed: of all noise.
        dynamic: the axes that the user made dynamic.

    Raises:
        UsageError: nothing runs sources of this framework, or an axis is not there.
        MissingToolError: the framework is not installed.
    """
    if subject.engine is not None:
        own: SourceEngine = subject.engine(subject, seed, dynamic)
        return own
    if subject.framework not in _ENGINES:
        raise UsageError(
            f"'{subject.origin}' is a source of the framework '{subject.framework}', which nothing here runs; "
            f"there are: {', '.join(_ENGINES)}"
        )
    factory: EngineFactory = imported(subject.framework, *_ENGINES[subject.framework])
    return factory(subject, seed, dynamic)
