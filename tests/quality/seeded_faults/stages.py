"""Both exporters stage by stage with plain tools: the independent judge of where a planted fault shows.

Each stage ends with a checkpoint that is executed. The stage of a fault is that of the first checkpoint from which all
later ones are bad, or the stage that raised. ONNX is run by the reference evaluator up to the file, so that a fault of
the runtime cannot show earlier.
"""

import io
import logging
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import torch
from onnx.reference import ReferenceEvaluator
from onnxscript._framework_apis import torch_2_11 as onnxscript_apis
from torch.onnx._internal.exporter import _core, _registration
from torch.utils import _pytree as pytree

from tests.quality.seeded_faults.fault import (
    DYNAMO,
    EXPORT,
    LOAD_MODEL,
    NODE_CONVERSION,
    OPTIMIZATION,
    RUNTIME,
    VALIDATION,
    SeededFault,
    Subject,
)

Run = Callable[[tuple[Any, ...]], list[np.ndarray]]
TOLERANCE = 1e-5
OPSET = 20


@dataclass(frozen=True)
class Attribution:
    """The stage that is to blame, or None, and whether something was raised or refused there."""

    stage: str | None
    symptom: str


class Progress:
    """The stage that is running; it is told to `say` so that it outlives the process."""

    def __init__(self, say: Callable[[str], None] = lambda stage: None) -> None:
        self.stage = ""
        self._say = say

    def enter(self, stage: str) -> None:
        self.stage = stage
        self._say(stage)


def _arrays(outputs: Any) -> list[np.ndarray]:
    return [np.asarray(leaf.detach()) for leaf in pytree.tree_leaves(outputs)]


def _in_torch(module: Callable[..., Any]) -> Run:
    return lambda args: _arrays(module(*args))


def _in_evaluator(model: onnx.ModelProto) -> Run:
    evaluator = ReferenceEvaluator(model)
    names = [value.name for value in model.graph.input]
    return lambda args: evaluator.run(None, dict(zip(names, (arg.numpy() for arg in args), strict=False)))


def _in_runtime(path: Path) -> Run:
    session = ort.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    names = [value.name for value in session.get_inputs()]
    return lambda args: session.run(None, dict(zip(names, (arg.numpy() for arg in args), strict=True)))


@lru_cache(maxsize=1)
def _registry() -> _registration.ONNXRegistry:
    return _registration.ONNXRegistry.from_torchlib(opset_version=OPSET)


def _dynamo(subject: Subject, path: Path, progress: Progress) -> Iterator[Run]:
    module, args = subject
    registry = _registry()
    progress.enter(LOAD_MODEL)
    program = torch.export.export(module, args, strict=False)
    yield _in_torch(program.module())
    lowered = _core._prepare_exported_program_for_export(program, registry=registry)
    yield _in_torch(lowered.module())
    progress.enter(NODE_CONVERSION)
    converted = _core._exported_program_to_onnx_program(lowered, registry=registry)
    # Until here the graph claims opset 18 whatever its nodes need.
    converted.model = onnxscript_apis.convert_version(converted.model, OPSET)
    yield _in_evaluator(converted.model_proto)
    progress.enter(OPTIMIZATION)
    converted.optimize()
    yield _in_evaluator(converted.model_proto)
    progress.enter(EXPORT)
    converted.save(path)


def _script(subject: Subject, path: Path, progress: Progress) -> Iterator[Run]:
    module, args = subject
    progress.enter(LOAD_MODEL)
    yield _in_torch(torch.jit.trace(module, args, check_trace=False))
    for stage, folding in ((NODE_CONVERSION, False), (OPTIMIZATION, True)):
        progress.enter(stage)
        memory = io.BytesIO()
        torch.onnx.export(module, args, memory, dynamo=False, do_constant_folding=folding)
        yield _in_evaluator(onnx.load_from_string(memory.getvalue()))
    progress.enter(EXPORT)
    torch.onnx.export(module, args, str(path), dynamo=False)


def _until_file(fault: SeededFault, subject: Subject, path: Path, progress: Progress) -> Iterator[Run]:
    yield from (_dynamo if fault.converter == DYNAMO else _script)(subject, path, progress)
    yield _in_evaluator(onnx.load(str(path)))


def _is_bad(run: Run, inputs: list[tuple[Any, ...]], reference: list[list[np.ndarray]]) -> bool:
    for args, expected in zip(inputs, reference, strict=True):
        found = [np.asarray(value) for value in run(args)]
        kinds = [(value.shape, value.dtype) for value in found]
        if kinds != [(value.shape, value.dtype) for value in expected]:
            return True
        for a, b in zip(expected, found, strict=True):
            scale = float(np.abs(a.astype(np.float64)).max(initial=1e-30))
            if not np.allclose(a.astype(np.float64) / scale, b.astype(np.float64) / scale, rtol=0, atol=TOLERANCE):
                return True
    return False


def _first_of_the_bad_end(checkpoints: list[tuple[str, bool]]) -> str | None:
    stage = None
    for name, bad in reversed(checkpoints):
        if not bad:
            break
        stage = name
    return stage


def attribute(fault: SeededFault, progress: Progress) -> Attribution:
    """Goes through all stages as they are now, planted or not, with two sets of inputs."""
    subject = fault.build(0)
    inputs = [subject[1], fault.build(1)[1]]
    reference = [_arrays(subject[0](*args)) for args in inputs]
    checkpoints = []
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(folder) / "model.onnx"
        try:
            for run in _until_file(fault, subject, path, progress):
                checkpoints.append((progress.stage, _is_bad(run, inputs, reference)))
        except Exception:  # noqa: BLE001 - a planted fault may raise anything
            return Attribution(progress.stage, "crash")
        progress.enter(VALIDATION)
        try:
            onnx.checker.check_model(str(path), full_check=True)
        except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError):
            checkpoints.append((VALIDATION, True))
        else:
            checkpoints.append((VALIDATION, _first_of_the_bad_end(checkpoints) is not None))
        progress.enter(RUNTIME)
        try:
            checkpoints.append((RUNTIME, _is_bad(_in_runtime(path), inputs, reference)))
        except Exception:  # noqa: BLE001 - a planted fault may raise anything
            checkpoints.append((RUNTIME, True))
            return Attribution(_first_of_the_bad_end(checkpoints), "crash")
    return Attribution(_first_of_the_bad_end(checkpoints), "wrong-model")


def main(name: str) -> None:
    """Plants a fault as a user's file would and says each stage before it runs."""
    from tests.quality.seeded_faults import models

    logging.disable(logging.ERROR)
    getattr(models, name.replace("-", "_"))()
    progress = Progress(lambda stage: print(stage, file=sys.stderr, flush=True))  # noqa: T201 - read by the test
    attribute(models.FAULTS[name], progress)
