"""ONNX's own reference evaluator: slow, and with faults of its own, but a second opinion."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import RuntimeContextError

from trueport.adapters.float64.replay.rounding import Budget
from trueport.core.errors import UsageError

Array = NDArray[Any]


class OnnxReference:
    """Loads files into reference evaluators.

    Args:
        provider: must be None; the evaluator has no providers.
        threads: ignored; the evaluator has one.
    """

    name = "onnx-reference"
    levels = ("all",)

    def __init__(self, *, provider: str | None = None, threads: int = 1) -> None:
        if provider not in (None, "CPUExecutionProvider"):
            raise UsageError(f"onnx-reference has no provider '{provider}'")
        del threads

    def load(self, path: Path, *, level: str | None = None) -> OnnxReferenceSession:
        """Returns an evaluator of the file; it never optimizes."""
        del level
        return OnnxReferenceSession(ReferenceEvaluator(onnx.load(str(path))))

    def switches(self, path: Path, level: str | None = None) -> None:
        """Returns nothing: it has no parts that could be switched off."""
        del path, level

    def lacks_kernel(self, error: BaseException) -> str | None:
        """Returns the operator where the error says by its class that it is not implemented, else None.

        It may do so when the file is loaded or when the operator is run; the operator is that of the frames that the
        exception passed through.
        """
        current: BaseException | None = error
        while current is not None:
            if isinstance(current, (NotImplementedError, RuntimeContextError)):
                return _operator_of(error) or "an operator"
            current = current.__cause__
        return None

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

    def run(self, feeds: Mapping[str, Any]) -> list[Any]:
        """Returns the outputs in the model's own types: arrays, lists of arrays, None for an absent optional."""
        with np.errstate(all="ignore"):
            outputs = self._evaluator.run(None, dict(feeds))
        return [_plain(output) for output in outputs]


def _plain(value: Any) -> Any:
    if value is None:
        return None
    return [_plain(v) for v in value] if isinstance(value, (list, tuple)) else np.asarray(value)


def _operator_of(error: BaseException) -> str:
    """The innermost node among the variables of the frames."""
    found = ""
    traceback = error.__traceback__
    while traceback is not None:
        variables = traceback.tb_frame.f_locals
        node = getattr(variables.get("self"), "onnx_node", None) or variables.get("node")
        if isinstance(node, onnx.NodeProto):
            found = node.op_type if node.domain in ("", "ai.onnx") else f"{node.domain}.{node.op_type}"
        traceback = traceback.tb_next
    return found
