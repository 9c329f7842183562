"""One conversion: the converter's checkpoints judged as they come, then each runtime on the file that came out."""

from __future__ import annotations

import contextlib
import hashlib
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from trueport.adapters.float64.constants import KnownNumbers
from trueport.adapters.float64.onnx_program import OnnxProgram
from trueport.adapters.float64.replay.flat import flat
from trueport.adapters.protocols import (
    Array,
    Checkpoint,
    Converter,
    ConverterOptions,
    Executable,
    Runtime,
    SourceEngine,
    StageFailure,
)
from trueport.bisect.judge import Judgement, judge_arithmetic, judge_meaning
from trueport.bisect.references import References
from trueport.bisect.road import Step, file_step
from trueport.core.errors import TrueportError
from trueport.core.options import CheckOptions, ToleranceKind
from trueport.core.taxonomy import Kind, Lane, Stage, Status
from trueport.inputs.draw import InputSet
from trueport.onnxgraph.nesting import tensors
from trueport.onnxgraph.validate import complaints
from trueport.oracle.floor import elementwise_floor
from trueport.oracle.noise import ALARM, SCREEN

Emit = Callable[[dict[str, Any]], None]


class Walk:
    """The steps of one conversion; `run` adds a runtime's.

    Attributes:
        steps: what happened up to the file.
        file: the checkpoint that is the file, or None where the converter did not get that far.
        otherwise: the converter failed as users call it and succeeds under other conditions; which, and how to say it.
        right: the last checkpoint before the first of the bad ones at the end of the road; None where there is none.
        wrong: that first bad one.
        unoptimized: the last model before the converter's optimizer; None where there is none.
        converter: that was run, with its settings; None before.
    """

    def __init__(self, references: References, known: KnownNumbers, options: CheckOptions, emit: Emit) -> None:
        self.references = references
        self.steps: list[Step] = []
        self.file: Checkpoint | None = None
        self.otherwise: tuple[Kind, str] | None = None
        self.right: Checkpoint | None = None
        self.wrong: Checkpoint | None = None
        self.unoptimized: Checkpoint | None = None
        self.converter: tuple[Converter, ConverterOptions] | None = None
        self.known = known
        self._options = options
        self._emit = emit
        self._last: tuple[bytes, Judgement] | None = None
        self._earlier: dict[Stage, Executable] = {}

    # ------------------------------------------------------------------ the converter

    def convert(self, converter: Converter, source: SourceEngine, settings: ConverterOptions) -> None:
        """Goes through the converter's checkpoints until the file, or until a stage raises."""
        checkpoints = converter.convert(source.subject, settings)
        self.converter = (converter, settings)
        for stage, name in converter.plan:
            started = time.perf_counter()
            self._emit({"event": "stage", "stage": stage, "checkpoint": name})
            try:
                checkpoint = next(checkpoints, None)
            except TrueportError:
                raise
            except Exception as error:  # noqa: BLE001 - whatever a converter raises is its result
                self._raised(stage, name, error, time.perf_counter() - started)
                self.otherwise = source.succeeds_otherwise(lambda: _succeeds(converter, source, settings))
                return
            if checkpoint is None:
                return
            self._emit({"event": "judging", "stage": stage, "checkpoint": name})
            judgement = self._judge(checkpoint, settings.folder)
            step = Step(checkpoint.stage, checkpoint.name, judgement, facts=dict(checkpoint.facts))
            self._add(step, time.perf_counter() - started)
            if checkpoint.model is not None and checkpoint.stage in (Stage.LOAD_MODEL, Stage.NODE_CONVERSION):
                self.unoptimized = checkpoint
            if step.bad:
                self.wrong = self.wrong or checkpoint
            elif judgement.status is Status.OK:
                self.right, self.wrong = checkpoint, None
            if checkpoint.path is not None:
                self.file = checkpoint
                self._validate(checkpoint.path)

    def _raised(self, stage: Stage, name: str, error: Exception, elapsed_s: float) -> None:
        if isinstance(error, StageFailure):
            stage = error.stage
            cause = error.__cause__
            error = cause if isinstance(cause, Exception) else error
        self._add(Step(stage, name, Judgement(Status.CRASHED, Lane.NONE), error=error), elapsed_s)

    def _add(self, step: Step, elapsed_s: float) -> None:
        self.steps.append(replace(step, judgement=replace(step.judgement, elapsed_s=elapsed_s)))
        self._emit({"event": "record", "stage": step.stage, "checkpoint": step.name, "status": step.judgement.status})

    def _judge(self, checkpoint: Checkpoint, folder: Path) -> Judgement:
        """The meaning lane; where a float64 kernel is missing, the runtime without its own optimizations."""
        if checkpoint.is_source:
            return Judgement(Status.OK, Lane.NONE)
        content = self._content(checkpoint)
        if content is not None and self._last is not None and self._last[0] == content:
            return self._last[1]
        executable = checkpoint.executable
        judged = [s.judgement for s in self.steps if s.judgement.lane is Lane.MEANING]
        before = judged[-1] if judged else None

        def noisy(inputs: InputSet, draws: int) -> list[list[Array]]:
            return self._noise(executable, inputs, draws)

        judgement = judge_meaning(
            lambda inputs: executable.evaluate(inputs, self.known),
            noisy,
            self.references,
            counts=self._counts,
            before=before,
        )
        if judgement.missing and checkpoint.model is not None:
            judgement = self._judge_by_runtime(checkpoint, folder, judgement)
        if content is not None:
            self._last = (content, judgement)
        if judgement.status is Status.OK and checkpoint.path is None:
            self._earlier[checkpoint.stage] = executable
        return judgement

    def _noise(self, executable: Executable, inputs: InputSet, draws: int) -> list[list[Array]]:
        """The noise of a checkpoint and of the last one of each stage before: what they computed it may have folded."""
        seed, known = self._options.seed, self.known
        runs = executable.noisy(inputs, draws=draws, seed=seed, known=known)
        if draws <= SCREEN.meaning:
            return runs  # few draws may acquit, and mostly do so without those of earlier checkpoints
        main = [output.value for output in executable.evaluate(inputs, known)]
        for earlier in self._earlier.values():
            with contextlib.suppress(Exception):  # one that cannot be evaluated here has no noise to pass on
                before = [output.value for output in earlier.evaluate(inputs, known)]
                if [b.shape for b in before] != [m.shape for m in main]:
                    continue
                for run in earlier.noisy(inputs, draws=draws, seed=seed, known=known):
                    runs.append([_moved(m, r, b) for m, r, b in zip(main, run, before, strict=True)])
        return runs

    def _judge_by_runtime(self, checkpoint: Checkpoint, folder: Path, before: Judgement) -> Judgement:
        """The arithmetic lane on a checkpoint in memory, with the runtime's own optimizations off."""
        import onnx

        from trueport.adapters.runtimes import runtime

        path = checkpoint.path or Path(folder) / f"checkpoint-{checkpoint.stage}.onnx"
        if checkpoint.path is None:
            onnx.save(checkpoint.model, str(path))
        program = checkpoint.executable
        assert isinstance(program, OnnxProgram)
        try:
            session = runtime("onnxruntime", threads=self._options.threads).load(path, level="disabled")
        except Exception:  # noqa: BLE001 - that the stand-in cannot load it says nothing about the checkpoint
            return before
        judgement = judge_arithmetic(
            lambda inputs: flat(session.run(program.feeds(inputs))),
            lambda _: None,
            self.references,
            counts=self._counts,
        )
        if judgement.status is Status.CRASHED:
            return before
        return replace(judgement, missing=before.missing)

    @staticmethod
    def _content(checkpoint: Checkpoint) -> bytes | None:
        """What identifies a model, so that one that is the same as the one before it is not evaluated again."""
        if checkpoint.model is None:
            return None
        for tensor in tensors(checkpoint.model):
            if tensor.data_location == tensor.DEFAULT:
                tensor.ClearField("data_location")  # reading external data writes the default out, which says nothing
        try:
            return hashlib.sha256(checkpoint.model.SerializeToString(deterministic=True)).digest()
        except Exception:  # noqa: BLE001 - above two gigabytes a model cannot be serialized, whatever is raised then
            return None

    def _validate(self, path: Path) -> None:
        started = time.perf_counter()
        self._emit({"event": "stage", "stage": Stage.VALIDATION, "checkpoint": "checker and shape inference"})
        found = complaints(path)
        status = Status.DIVERGED if found else Status.OK
        step = Step(
            Stage.VALIDATION, "checker and shape inference", Judgement(status, Lane.NONE), complaints=tuple(found)
        )
        self._add(step, time.perf_counter() - started)

    def _counts(self, inputs: InputSet) -> bool:
        return inputs.regime != "nonfinite" or self._options.nonfinite

    # ------------------------------------------------------------------ the runtime

    def run(self, runtime: Runtime) -> list[Step]:
        """Returns all steps, the runtime's last where there is a file to run.

        Where the runtime fails on a file that is right, its lower optimization levels are tried too and come before
        it: from which level on the result is bad says which of its optimizations to blame.
        """
        if self.file is None:
            return list(self.steps)
        last = self._run_at(runtime, None)
        lower: list[Step] = []
        file = file_step(self.steps)
        if last.bad and file is not None and not file.bad and len(runtime.levels) > 1:
            lower = [self._run_at(runtime, level) for level in runtime.levels[:-1]]
        return [*self.steps, *lower, last]

    def _run_at(self, runtime: Runtime, level: str | None) -> Step:
        """Runs the file at one optimization level, as users run it where none is given."""
        assert self.file is not None and self.file.path is not None
        started = time.perf_counter()
        name = runtime.name if level is None else f"{runtime.name} at level {level}"
        self._emit({"event": "stage", "stage": Stage.RUNTIME, "checkpoint": name})
        try:
            session = runtime.load(self.file.path, level=level)
        except Exception as error:  # noqa: BLE001 - a refusal is a result
            judgement = Judgement(Status.CRASHED, Lane.NONE, elapsed_s=time.perf_counter() - started)
            facts = {"refused": error, "no_kernel": runtime.lacks_kernel(error)}
            return Step(Stage.RUNTIME, name, judgement, facts=facts)
        program = self.file.executable
        assert isinstance(program, OnnxProgram)
        tolerance = self._options.tolerance
        fixed = (tolerance.rtol, tolerance.atol) if tolerance.kind is ToleranceKind.FIXED else None
        judgement = judge_arithmetic(
            lambda inputs: flat(session.run(program.feeds(inputs))),
            lambda inputs: self.file_floors(program, inputs, runtime),
            self.references,
            counts=self._counts,
            fixed=fixed,
        )
        errors = [t.error for t in judgement.failures if t.error is not None]
        facts = {"no_kernel": runtime.lacks_kernel(errors[0])} if errors else {}
        judgement = replace(judgement, elapsed_s=time.perf_counter() - started)
        self._emit({"event": "record", "stage": Stage.RUNTIME, "checkpoint": name, "status": judgement.status})
        return Step(Stage.RUNTIME, name, judgement, facts=facts)

    def file_floors(self, program: OnnxProgram, inputs: InputSet, runtime: Runtime) -> Sequence[Array | None] | None:
        """The rounding noise of the file's own operators: it may decompose what the source computes in one."""
        try:
            main, runs = program.rounded(
                inputs, draws=ALARM.arithmetic, seed=self._options.seed, budgets=runtime.budgets
            )
        except Exception:  # noqa: BLE001 - without it the source's own floor decides
            return None
        floors: list[Array | None] = []
        for i, value in enumerate(main):
            column = [np.asarray(run[i]) for run in runs]
            usable = value.dtype.kind == "f" and all(c.shape == value.shape for c in column)
            floors.append(elementwise_floor(value, column) if usable else None)
        return floors


def _moved(main: Array, run: Array, before: Array) -> Array:
    """Returns an output moved by the noise that an earlier checkpoint has there."""
    if main.dtype.kind not in "fc":
        return main
    with np.errstate(invalid="ignore"):
        return np.asarray(main + (run - before))


def _succeeds(converter: Converter, source: SourceEngine, settings: ConverterOptions) -> bool:
    """Whether the converter reaches its last checkpoint."""
    try:
        count = sum(1 for _ in converter.convert(source.subject, settings))
    except Exception:  # noqa: BLE001 - it fails here as well
        return False
    return count == len(converter.plan)
