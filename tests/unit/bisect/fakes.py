"""Sources, trials and steps made by hand."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from trueport.bisect.judge import Judgement, Trial
from trueport.bisect.road import Step
from trueport.core.errors import SourceError
from trueport.core.taxonomy import Kind, Lane, Stage, Status
from trueport.inputs.draw import InputSet
from trueport.oracle.compare import Comparison, ReferenceOutput

EXAMPLE = InputSet("example", "example", (np.zeros(1),))
AWAY = InputSet("redrawn 1", "redrawn", (np.ones(1),))
NONFINITE = InputSet("NaN and infinity", "nonfinite", (np.full(1, np.nan),))
EDGE = InputSet("zeros", "zeros", (np.zeros(1) - 1,))


def output(value, *, dtype="float32", floor=1e-13, noise=1e-6, unstable=None, name="y", draws=4):
    value = np.asarray(value)
    taint = np.zeros(value.shape, bool) if unstable is None else np.asarray(unstable)
    full = np.ones(value.shape)
    return ReferenceOutput(name, dtype, value, full * floor, full * noise, taint, draws)


@dataclass(frozen=True)
class Reference:
    outputs: tuple[ReferenceOutput, ...]
    real: tuple[np.ndarray, ...]
    ties: bool = False


@dataclass
class FakeSource:
    """Answers `value(inputs)`; refuses labels in `refuses`; remembers what it was asked."""

    value: Any = lambda inputs: np.arange(3.0)
    refuses: tuple[str, ...] = ()
    unstable: Any = lambda inputs: None
    second: Any = None
    asked: list[tuple[str, int, int]] = field(default_factory=list)

    def reference(self, inputs, number, draws):
        self.asked.append((inputs.label, number, draws.total))
        if inputs.label in self.refuses:
            cause = ValueError(f"no {inputs.label} please")
            raise SourceError(f"ValueError: {cause}") from cause
        value = np.asarray(self.value(inputs))
        made = output(value, unstable=self.unstable(inputs), draws=draws.total)
        return Reference((made,), (value.astype(np.float32),))

    def real(self, inputs, *, fresh_random):
        if self.second is not None:
            return self.second
        return (np.asarray(self.value(inputs)).astype(np.float32),)


def right(inputs=EXAMPLE):
    return Trial(inputs, (Comparison(None, 0.5, compared=3),))


def wrong(inputs=EXAMPLE, score=1e6, **known):
    return Trial(inputs, (Comparison(Kind.VALUE, score, (0,), 1.0, 2.0, 1e-6, 3, 0, 1),), **known)


def failed(inputs=EXAMPLE):
    return Trial(inputs, error=RuntimeError("no"))


def judgement(*trials, lane=Lane.MEANING):
    status = Status.OK
    if any(t.bad for t in trials):
        status = Status.DIVERGED
    if any(t.error is not None for t in trials):
        status = Status.CRASHED
    return Judgement(status, lane, trials)


GOOD, BAD, CRASH, BLIND = "good", "bad", "crash", "blind"

ROAD = (
    (Stage.LOAD_MODEL, "captured"),
    (Stage.LOAD_MODEL, "decomposed"),
    (Stage.NODE_CONVERSION, "unoptimized"),
    (Stage.OPTIMIZATION, "optimized"),
    (Stage.EXPORT, "file"),
    (Stage.RUNTIME, "runtime"),
)


def step(stage, name, what):
    """One step: right, wrong, raising on every input, or with no float64 kernel."""
    lane = Lane.ARITHMETIC if stage is Stage.RUNTIME else Lane.MEANING
    if what == BLIND:
        return Step(stage, name, Judgement(Status.NOT_RUN, Lane.NONE, missing=("Strange",)))
    made = {GOOD: right, BAD: wrong, CRASH: failed}[what]
    return Step(stage, name, judgement(made(EXAMPLE), made(AWAY), lane=lane))


def road(*pattern):
    """The steps of a whole conversion, by what each checkpoint is."""
    return [step(stage, name, what) for (stage, name), what in zip(ROAD, pattern, strict=True)]


def validation(*complaints):
    status = Status.DIVERGED if complaints else Status.OK
    return Step(Stage.VALIDATION, "checker", Judgement(status, Lane.NONE), complaints=complaints)


def raising(stage, name="it"):
    return Step(stage, name, Judgement(Status.CRASHED, Lane.NONE), error=ValueError("no"))


def refusing():
    """A runtime that does not load the file."""
    return Step(Stage.RUNTIME, "runtime", Judgement(Status.CRASHED, Lane.NONE), facts={"refused": ValueError("no")})
