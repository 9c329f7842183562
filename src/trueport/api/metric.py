"""`--metric`: the user's own task metric on both sides, and the labels that flip between them.

The metric is a function `NAME(run, data) -> float` in the user's file. `data` is the absolute path of `--data`, as
text: the metric reads it in whatever form it has. `run(*arrays)` takes one array for each tensor input of the source,
in the order of its arguments, and returns the list of its output arrays; it is bound to the source the first time and
to the ONNX file in the runtime the second time. Both times the random generators start from the check's seed.

A metric alone decides nothing: half a percent of accuracy may be luck. What decides is a *flip*: an output row whose
largest element is another one. A flip is explained where the two candidates for the largest element lie, in float64,
nearer to each other than their arithmetic floors, by the same margin as every other decision in a model.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from trueport.core.errors import UsageError
from trueport.core.result import Check, Finding
from trueport.core.signature import signature
from trueport.core.taxonomy import Kind, Stage, Symptom, Verdict
from trueport.inputs.draw import InputSet
from trueport.onnxgraph.validate import first_line
from trueport.oracle.compare import ReferenceOutput
from trueport.oracle.noise import ALARM
from trueport.oracle.thresholds import THRESHOLDS
from trueport.oracle.units import float_type

if TYPE_CHECKING:
    from trueport.adapters.protocols import Checkpoint, Runtime
    from trueport.api.session import Session

Array = NDArray[Any]
Run = Callable[..., list[Array]]

_FIRST_NUMBER = 1_000_000
"""Batches of a metric are numbered from here on, so that their noise is not that of the check's own input sets."""


@dataclass
class Flips:
    """Rows whose largest element is another one.

    Attributes:
        labels: rows looked at.
        flipped: rows with another largest element.
        unexplained: those of them that rounding does not explain.
        paired: whether both sides were asked the same questions in the same order.
    """

    labels: int = 0
    flipped: int = 0
    unexplained: int = 0
    paired: bool = True


def with_metric(check: Check, session: Session, file: Checkpoint | None, runtime: Runtime) -> Check:
    """Returns the check with the metric's finding; without a metric, or without a file, as it is.

    Raises:
        UsageError: the metric cannot be found, or fails on the source.
    """
    if session.options.metric is None or file is None or check.verdict is Verdict.CRASHED:
        return check
    metric = _Metric(session)
    session.emit({"event": "judging", "stage": Stage.RUNTIME, "checkpoint": "the metric on the source"})
    source = _Source(session)
    reference = metric.on_source(source)
    session.emit({"event": "stage", "stage": Stage.RUNTIME, "checkpoint": "the metric on the ONNX file"})
    candidate = _Candidate(source, file, runtime)
    try:
        value = metric.on(candidate)
    except Exception as error:  # noqa: BLE001 - that the file cannot do what the source does is a result
        return _failed(check, session, reference, error)
    return _compared(check, session, reference, value, candidate.flips())


# ---------------------------------------------------------------------- the metric


class _Metric:
    """The user's function with its data."""

    def __init__(self, session: Session) -> None:
        from trueport.adapters.sources.file_import import object_of_file

        assert session.options.metric is not None
        assert session.options.data is not None
        self._seed = session.options.seed
        self._spec = session.options.metric
        self._data = str(Path(session.options.data).resolve())
        found = object_of_file(self._spec, default_name="metric", seed=self._seed)
        if not callable(found.value):
            raise UsageError(f"expected '{self._spec}' to be a function (run, data) -> float, got {found.value!r:.60}")
        self._function = found.value

    def on(self, run: Run) -> float:
        """Returns the metric of one side."""
        from trueport.adapters.sources.global_state import preserved_global_state

        with preserved_global_state(self._seed):
            value = self._function(run, self._data)
        try:
            return float(value)
        except (TypeError, ValueError) as error:
            raise UsageError(f"expected '{self._spec}' to return a number, got {type(value).__name__}") from error

    def on_source(self, run: Run) -> float:
        """Returns the metric of the source."""
        try:
            return self.on(run)
        except UsageError:
            raise
        except Exception as error:
            raise UsageError(
                f"the metric '{self._spec}' fails on the source: {type(error).__name__}: {first_line(error)}"
            ) from error


# ---------------------------------------------------------------------- the two sides


@dataclass
class _Source:
    """Runs the source and remembers what it was asked and how it labelled."""

    session: Session
    digests: list[bytes] = field(default_factory=list)
    outputs: list[list[Array]] = field(default_factory=list)

    def __call__(self, *arrays: Any) -> list[Array]:
        """Returns the source's outputs for one batch."""
        inputs = self.inputs(arrays)
        outputs = [np.asarray(o) for o in self.session.source.real(inputs, fresh_random=False)]
        self.digests.append(_digest(inputs))
        self.outputs.append([_labels(output) for output in outputs])
        return outputs

    def inputs(self, arrays: Sequence[Any]) -> InputSet:
        """Returns one batch in the types of the source's example; a type that would lose its kind is refused."""
        specs = self.session.specs
        if len(arrays) != len(specs):
            names = ", ".join(spec.name for spec in specs)
            raise UsageError(f"run() takes one array for each input of the source ({names}), got {len(arrays)}")
        made = []
        for spec, given in zip(specs, arrays, strict=True):
            array = np.asarray(given)
            if not np.can_cast(array.dtype, spec.example.dtype, casting="same_kind"):
                raise UsageError(
                    f"run(): expected {spec.example.dtype.name} for input '{spec.name}', got {array.dtype.name}"
                )
            made.append(array.astype(spec.example.dtype, copy=False))
        return InputSet("metric", "metric", tuple(made))


class _Candidate:
    """Runs the ONNX file and compares its labels, batch by batch, with those of the source."""

    def __init__(self, source: _Source, file: Checkpoint, runtime: Runtime) -> None:
        from trueport.adapters.float64.onnx_program import OnnxProgram

        assert file.path is not None
        assert isinstance(file.executable, OnnxProgram)
        self._source = source
        self._program = file.executable
        self._session = runtime.load(file.path)
        self._calls = 0
        self._flips = Flips()

    def __call__(self, *arrays: Any) -> list[Array]:
        """Returns the file's outputs for one batch."""
        inputs = self._source.inputs(arrays)
        outputs = self._session.run(self._program.feeds(inputs))
        self._compare(inputs, outputs)
        self._calls += 1
        return outputs

    def flips(self) -> Flips:
        """Returns what was counted; not paired where a side was asked more than the other."""
        return replace(self._flips, paired=self._flips.paired and self._calls == len(self._source.digests))

    def _compare(self, inputs: InputSet, outputs: Sequence[Array]) -> None:
        number = self._calls
        if number >= len(self._source.digests) or self._source.digests[number] != _digest(inputs):
            self._flips.paired = False
            return
        exact: tuple[ReferenceOutput, ...] | None = None
        for i, expected in enumerate(self._source.outputs[number]):
            if not expected.size:
                continue
            self._flips.labels += expected.size
            got = _labels(np.asarray(outputs[i])) if i < len(outputs) else np.zeros(0, np.int64)
            if got.shape != expected.shape:
                self._flips.flipped += expected.size
                self._flips.unexplained += expected.size
                continue
            if (got == expected).all():
                continue
            if exact is None:
                exact = self._source.session.source.reference(inputs, _FIRST_NUMBER + number, ALARM).outputs
            different = got != expected
            self._flips.flipped += int(different.sum())
            self._flips.unexplained += int((different & ~explained(exact[i], expected, got)).sum())


def explained(exact: ReferenceOutput, expected: Array, got: Array) -> Array:
    """Returns for each row whether rounding explains that another element is the largest.

    Both labels must lie, in float64, within the margin of the largest element: a near tie of the first two explains no
    third.

    Args:
        exact: the output in float64 with its floors, [..., classes].
        expected: the source's labels, [...].
        got: the candidate's labels, [...].
    """
    kind = float_type(exact.dtype)
    unit = kind.unit_roundoff if kind is not None else 0.0
    with np.errstate(all="ignore"):
        room = THRESHOLDS.margin * exact.arithmetic_floor + unit * np.abs(exact.value)
        best = _labels(exact.value)
        near = np.ones(expected.shape, bool)
        for label in (expected, got):
            gap = np.abs(_pick(exact.value, best) - _pick(exact.value, label))
            decided = gap <= _pick(room, best) + _pick(room, label)
            near &= decided | _pick(exact.unstable, label) | _pick(exact.unstable, best)
    return near


def _pick(values: Array, labels: Array) -> Array:
    return np.asarray(np.take_along_axis(values, labels[..., None], axis=-1)[..., 0])


def _labels(output: Array) -> Array:
    """Returns the place of the largest element along the last axis; nothing where an output has no such axis."""
    if output.dtype.kind not in "fV" or output.ndim == 0 or output.shape[-1] < 2:
        return np.zeros(0, np.int64)
    return np.asarray(np.argmax(output.astype(np.float64), axis=-1))


def _digest(inputs: InputSet) -> bytes:
    digest = hashlib.sha256()
    for array in inputs.arrays:
        digest.update(f"{array.dtype.name}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.digest()


# ---------------------------------------------------------------------- the finding


def _compared(check: Check, session: Session, reference: float, value: float, flips: Flips) -> Check:
    references = session.references
    assert references is not None
    judged = flips.paired and references.deterministic
    wrong = flips.unexplained if judged else 0
    text = f"the metric is {reference:.6g} on the source and {value:.6g} on the ONNX file"
    if not references.deterministic:
        text += "; two runs of the source differ, so labels were not compared"
    elif not flips.paired:
        text += "; it asked the two sides different questions, so labels were not compared"
    elif flips.labels:
        beyond = f", {wrong} of them more than rounding explains" if flips.flipped else ""
        text += f"; {flips.flipped} of {flips.labels} labels flip{beyond}"
    alters = wrong > 0 and check.verdict in (Verdict.FAITHFUL, Verdict.INCONCLUSIVE)
    evidence = {
        "reference": _number(reference), "candidate": _number(value), "difference": _number(value - reference),
        "labels": flips.labels if judged else None, "flipped": flips.flipped if judged else None,
        "unexplained": flips.unexplained if judged else None,
    }  # fmt: skip
    finding = _finding(check, session, text, material=wrong > 0, stage=_stage(check, alters), evidence=evidence)
    if not alters:
        return _with(check, finding, f"{check.explanation} {_sentence(text)}")
    told = f"{_sentence(text)} The check's own inputs did not show it; there it reads: {check.explanation}"
    changed = replace(check, verdict=Verdict.DIVERGENT, symptom=Symptom.WRONG_MODEL, stage=Stage.NOT_DISTINGUISHABLE)
    return _with(changed, finding, told, first=True)


def _failed(check: Check, session: Session, reference: float, error: Exception) -> Check:
    """A metric that the source has and the file has not: no comparison, so no pass."""
    text = (
        f"the metric is {reference:.6g} on the source and cannot be computed on the ONNX file: "
        f"{type(error).__name__}: {first_line(error)}"
    )
    evidence = {"reference": _number(reference), "candidate": None, "exception": type(error).__name__}
    finding = _finding(check, session, text, material=False, stage=None, evidence=evidence)
    verdict = Verdict.INCONCLUSIVE if check.verdict is Verdict.FAITHFUL else check.verdict
    return _with(replace(check, verdict=verdict), finding, f"{check.explanation} {_sentence(text)}")


def _stage(check: Check, alters: bool) -> Stage | None:
    return Stage.NOT_DISTINGUISHABLE if alters else check.stage


def _finding(
    check: Check, session: Session, text: str, *, material: bool, stage: Stage | None, evidence: dict[str, Any]
) -> Finding:
    symptom = Symptom.WRONG_MODEL if material else None
    dtypes = tuple(dict.fromkeys(spec.example.dtype.name for spec in session.specs))
    identity = signature(stage=stage, symptom=symptom, kind=Kind.METRIC, converter=check.converter, dtypes=dtypes)
    return Finding(identity, Kind.METRIC, material, symptom, stage, None, text, evidence=evidence)


def _with(check: Check, finding: Finding, explanation: str, *, first: bool = False) -> Check:
    findings = (finding, *check.findings) if first else (*check.findings, finding)
    return replace(check, findings=findings, explanation=explanation)


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def _number(value: float) -> float | str:
    """Returns a number that JSON can hold, or text for what is not finite."""
    return value if math.isfinite(value) else str(value)
