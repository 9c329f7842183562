"""One warm, isolated worker for all checks of a run of the evaluation."""

from __future__ import annotations

import atexit
import threading
from collections.abc import Sequence

from trueport import Checker

LIMIT_S = 900.0
TOOLS = (
    "onnxruntime", "openvino", "onnx.reference", "onnxscript.optimizer", "onnxscript.version_converter", "onnxsim",
    "onnxslim", "onnxoptimizer", "trueport.api.session", "trueport.adapters.float64.onnx", "trueport.api.conclude",
)  # fmt: skip
"""What checks of ONNX files import. ONNX Runtime and OpenVINO start a thread each by that, which waits and which forks
do without: sessions are made and run in them all the same."""


_OF_THREAD = threading.local()


def checker(preload: Sequence[str] | None = None, *, timeout_s: float = LIMIT_S) -> Checker:
    """Returns the checker of this thread; bad verdicts of its worker are confirmed in a fresh process.

    Args:
        preload: modules that these processes need not import themselves.
        timeout_s: of each check; both are those of the first call of a thread.
    """
    made: Checker | None = getattr(_OF_THREAD, "checker", None)
    if made is None:
        made = Checker(timeout_s=timeout_s, preload=preload)
        _OF_THREAD.checker = made
        atexit.register(made.close)
    return made
