"""Walks the checkpoints of one conversion and says from their pattern which stage broke the model.

The verdict is about what users run. The stage is that of the first checkpoint from which all later ones are bad: a
checkpoint that is bad although what follows is right (a checker that rejects a right model) is a finding and no more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from trueport.bisect.judge import Judgement
from trueport.core.taxonomy import Lane, Stage, Status, Symptom, Verdict


@dataclass(frozen=True)
class Step:
    """One checkpoint that was reached, or the stage in which the converter raised.

    Attributes:
        stage: the stage that it ends.
        name: what it is.
        judgement: how it compares; for a stage that raised, status `crashed` without trials.
        error: what the converter raised, or None.
        facts: what the converter reported.
        complaints: what the checker says (validation only).
    """

    stage: Stage
    name: str
    judgement: Judgement
    error: BaseException | None = None
    facts: dict[str, Any] = field(default_factory=dict)
    complaints: tuple[str, ...] = ()

    @property
    def bad(self) -> bool:
        """Whether what this checkpoint computes is wrong or cannot be computed."""
        return self.judgement.status in (Status.DIVERGED, Status.CRASHED)


@dataclass(frozen=True)
class Attribution:
    """Verdict, symptom and stage, and the step that shows them best."""

    verdict: Verdict
    symptom: Symptom | None
    stage: Stage | None
    step: Step | None


def attribute(steps: Sequence[Step], *, whole_file: bool = False) -> Attribution:
    """Returns what the pattern of checkpoints says.

    Args:
        steps: in order, the target runtime last unless the road ended earlier.
        whole_file: the file came from the user, so stages before the runtime cannot be told apart.
    """
    if not any(s.error is not None or s.judgement.trials or s.bad for s in steps):
        return Attribution(Verdict.INCONCLUSIVE, None, None, None)
    raised = next((s for s in steps if s.error is not None), None)
    if raised is not None:
        return Attribution(Verdict.CRASHED, Symptom.CRASH, raised.stage, raised)
    file = file_step(steps)
    runtime = next((s for s in reversed(steps) if s.stage is Stage.RUNTIME), None)
    decisive = [s for s in (file, runtime) if s is not None and not contradicted(s, steps[-1])]
    if not any(s.bad for s in decisive):
        return Attribution(Verdict.FAITHFUL, None, None, None)
    first = _first_of_bad_tail(steps)
    crashed = any(s.judgement.status is Status.CRASHED for s in decisive)
    verdict = Verdict.CRASHED if crashed else Verdict.DIVERGENT
    stage = first.stage
    if whole_file and stage is Stage.EXPORT:
        stage = Stage.NOT_DISTINGUISHABLE
    symptom = Symptom.CRASH if crashed else Symptom.WRONG_MODEL
    return Attribution(verdict, symptom, stage, first)


def file_step(steps: Sequence[Step]) -> Step | None:
    """Returns the last step of the converter; None where there is none.

    Mostly the file read back; a converter whose stages cannot be told apart ends with another stage.
    """
    return next((s for s in reversed(steps) if s.stage not in (Stage.VALIDATION, Stage.RUNTIME)), None)


def contradicted(step: Step, last: Step) -> bool:
    """Whether a checkpoint fails on an input set on which the end of the road is right.

    What comes after cannot be better than its origin, so such a checkpoint was not executed as it is (a traced graph
    that its own interpreter does not run) and says nothing.
    """
    if step is last:
        return False
    fine = {t.inputs.label for t in last.judgement.trials if not t.bad}
    return any(t.error is not None and t.inputs.label in fine for t in step.judgement.trials)


def _first_of_bad_tail(steps: Sequence[Step]) -> Step:
    """Returns the first step from which all later ones that can judge are bad.

    A file whose meaning is wrong is wrong even if the runtime's difference hides in rounding, so the tail is taken up
    to the file when the file is bad. A complaint of the checker counts only where the runtime then refuses the file.
    """
    runtime = steps[-1] if steps[-1].stage is Stage.RUNTIME else None
    judged = [
        s
        for s in steps
        if s.stage not in (Stage.RUNTIME, Stage.VALIDATION)  # the levels of the runtime are told apart below
        and s.judgement.lane is not Lane.NONE
        and not contradicted(s, steps[-1])
    ]
    if judged and judged[-1].bad:
        first = judged[-1]
        for step in reversed(judged):
            if not step.bad:
                break
            first = step
        return first
    assert runtime is not None
    refused = runtime.judgement.status is Status.CRASHED
    for step in steps:
        if step.stage is Stage.VALIDATION and step.complaints and refused:
            return step
    levels = [s for s in steps if s.stage is Stage.RUNTIME]
    for step in reversed(levels):
        if not step.bad:
            break
        runtime = step
    return runtime
