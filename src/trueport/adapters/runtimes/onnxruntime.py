"""ONNX Runtime as users run it: all graph optimizations, the provider and the threads they ask for."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray

from trueport.adapters.float64.onnx.rounding import Budget
from trueport.adapters.runtimes.onnxruntime_budgets import BUDGETS
from trueport.core.errors import UsageError

Array = NDArray[Any]

FATAL_ONLY = 4


class OnnxRuntime:
    """Loads files into sessions.

    Args:
        provider: execution provider, `CPUExecutionProvider` when None.
        threads: intra-operator threads.
    """

    name = "onnxruntime"

    def __init__(self, *, provider: str | None = None, threads: int = 1) -> None:
        available = ort.get_available_providers()
        self.provider = provider or "CPUExecutionProvider"
        if self.provider not in available:
            raise UsageError(f"onnxruntime has no provider '{self.provider}' here; it has: {', '.join(available)}")
        self.threads = threads

    def load(self, path: Path, *, optimized: bool = True) -> OnnxRuntimeSession:
        """Returns a session on the file."""
        ort.set_default_logger_severity(FATAL_ONLY)
        options = ort.SessionOptions()
        options.log_severity_level = FATAL_ONLY
        options.intra_op_num_threads = self.threads
        options.inter_op_num_threads = 1
        level = ort.GraphOptimizationLevel
        options.graph_optimization_level = level.ORT_ENABLE_ALL if optimized else level.ORT_DISABLE_ALL
        return OnnxRuntimeSession(ort.InferenceSession(str(path), options, providers=[self.provider]))

    @property
    def budgets(self) -> Mapping[str, Budget]:
        """What its CPU kernels may be off by, as measured."""
        return BUDGETS

    def versions(self) -> dict[str, str]:
        """Returns the version of onnxruntime."""
        return {"onnxruntime": ort.__version__}


class OnnxRuntimeSession:
    """One loaded file."""

    def __init__(self, session: Any) -> None:
        self._session = session

    def run(self, feeds: Mapping[str, Array]) -> list[Array]:
        """Returns the outputs in the model's own types."""
        contiguous = {name: np.ascontiguousarray(value).reshape(value.shape) for name, value in feeds.items()}
        outputs: list[Array] = self._session.run(None, contiguous)
        return outputs
