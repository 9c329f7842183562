"""ONNX's own reference evaluator: slow, and with faults of its own, but a second opinion."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx.reference import ReferenceEvaluator

from trueport.adapters.float64.onnx.rounding import Budget
from trueport.core.errors import UsageError

Array = NDArray[Any]


class OnnxReference:
    """Loads files into reference evaluators.

    Args:
        provider: must be None; the evaluator has no providers.
        threads: ignored; the evaluator has one.
    """

    name = "onnx-reference"

    def __init__(self, *, provider: str | None = None, threads: int = 1) -> None:
        if provider not in (None, "CPUExecutionProvider"):
            raise UsageError(f"onnx-reference has no provider '{provider}'")
        del threads

    def load(self, path: Path, *, optimized: bool = True) -> OnnxReferenceSession:
        """Returns an evaluator of the file; it never optimizes."""
        del optimized
        return OnnxReferenceSession(ReferenceEvaluator(onnx.load(str(path))))

    @property
    def budgets(self) -> Mapping[str, Budget]:
        """Its error function is an approximation good to 5e-8."""
        return {"Erf": Budget(absolute=2.0), "Gelu": Budget(absolute=2.0)}

    def versions(self) -> dict[str, str]:
        """Returns the version of onnx."""
        return {"onnx": onnx.__version__}


class OnnxReferenceSession:
    """One loaded file."""

    def __init__(self, evaluator: ReferenceEvaluator) -> None:
        self._evaluator = evaluator

    def run(self, feeds: Mapping[str, Array]) -> list[Array]:
        """Returns the outputs in the model's own types."""
        with np.errstate(all="ignore"):
            outputs = self._evaluator.run(None, dict(feeds))
        return [np.asarray(output) for output in outputs]
