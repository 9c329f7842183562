"""The two sides of the benchmark: a whole check, and the exporter's own verification.

As a program (`python -m benchmarks.sides SIDE`) it is the warm process of one side: it reads names of models, one a
line, works on each once and answers with wall and CPU seconds as JSON. `python -m benchmarks.sides SIDE MODEL` works on
one model and ends.
"""

from __future__ import annotations

import contextlib
import io
import json
import logging
import sys
import time
import warnings
from collections.abc import Callable

import torch

from benchmarks.models import MODELS, Subject


def check(subject: Subject) -> dict[str, object]:
    """Checks the model with all checkpoints and the default input sets, in this process."""
    from trueport.adapters.sources import subject_from_object
    from trueport.api.session import Session
    from trueport.core.options import CheckOptions

    module, args = subject
    made = Session(subject_from_object(module, args), CheckOptions(), lambda _: None).run().checks[0]
    return {"verdict": made.verdict, "inputs": made.inputs_tried, "checkpoints": len(made.stages)}


def export_and_verify(subject: Subject) -> dict[str, object]:
    """Exports the model and lets the exporter verify it."""
    module, args = subject
    torch.onnx.export(module, args, dynamo=True, verify=True, verbose=False)
    return {}


SIDES: dict[str, Callable[[Subject], dict[str, object]]] = {"check": check, "verify": export_and_verify}


def one_thread() -> None:
    """Lets PyTorch and every session of ONNX Runtime, the exporter's own as well, use one thread."""
    import onnxruntime

    torch.set_num_threads(1)
    plain = onnxruntime.SessionOptions

    def options() -> onnxruntime.SessionOptions:
        made = plain()
        made.intra_op_num_threads = made.inter_op_num_threads = 1
        return made

    onnxruntime.SessionOptions = options


def timed(side: str, model: str) -> dict[str, object]:
    """Returns what one side needs for one model that is built already."""
    subject = MODELS[model]()
    wall, cpu = time.perf_counter(), time.process_time()
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        facts = SIDES[side](subject)
    return {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu, **facts}


def main(arguments: list[str]) -> None:
    """Serves one side, or does one model."""
    side, *models = arguments
    one_thread()
    logging.disable(logging.ERROR)
    for model in models:
        timed(side, model)
    if models:
        return
    for line in sys.stdin:
        print(json.dumps(timed(side, line.strip())), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
