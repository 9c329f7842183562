"""Several runtimes on one file: a wrong result that only one of them gives is that one's.

Float64 is the arbiter, but no engine decides alone, not even our own: where three runtimes agree with each other and
not with float64, either the specification is open or the float64 evaluation is wrong, and nothing is decided.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from trueport.bisect.judge import Trial
from trueport.bisect.references import References
from trueport.bisect.road import Step
from trueport.core.result import Check, Finding
from trueport.core.signature import signature
from trueport.core.taxonomy import Kind, Stage, Verdict
from trueport.oracle.compare import compare_arithmetic

MAJORITY = 3
"""How many independent runtimes must agree to put float64 in doubt."""


@dataclass(frozen=True)
class Voter:
    """One runtime's check, and the steps behind it."""

    check: Check
    steps: Sequence[Step]

    @property
    def disputed(self) -> bool:
        """Whether the runtime, and not the file, gives another result than float64."""
        return self.check.verdict is Verdict.DIVERGENT and self.check.stage is Stage.RUNTIME


def settle(voters: Sequence[Voter], references: References) -> list[Check]:
    """Returns the checks, those in which the runtime differs with what the other runtimes say about it."""
    if len(voters) < 2:
        return [voter.check for voter in voters]
    return [_settled(voter, [v for v in voters if v is not voter], references) for voter in voters]


def _settled(voter: Voter, others: Sequence[Voter], references: References) -> Check:
    if not voter.disputed:
        return voter.check
    right = [v.check.runtime for v in others if v.check.verdict is Verdict.FAITHFUL]
    alike = [v.check.runtime for v in others if v.disputed and _agree(voter, v, references)]
    check = voter.check
    if right:
        message = f"{_listed(right)} computes the same file as float64 does; {check.runtime} alone differs"
        if alike:
            message = f"{_listed(right)} computes the same file as float64 does; {_listed(alike)} differs likewise"
        return _told(check, message, right, alike)
    if len(alike) + 1 >= MAJORITY:
        message = (
            f"{_listed([check.runtime, *alike])} agree with each other and not with float64: the specification leaves "
            "this open or the float64 evaluation is wrong"
        )
        text = f"{message[:1].upper()}{message[1:]}, so nothing is decided. {check.explanation}"
        told = _told(check, message, right, alike)
        return replace(told, verdict=Verdict.INCONCLUSIVE, symptom=None, stage=None, cause=None, explanation=text)
    if alike:
        return _told(check, f"{_listed(alike)} differs likewise", right, alike)
    return check


def _told(check: Check, message: str, right: Sequence[str], alike: Sequence[str]) -> Check:
    identity = signature(stage=Stage.RUNTIME, symptom=None, kind=Kind.VOTE, converter=check.converter)
    evidence = {"agree_with_float64": list(right), "differ_likewise": list(alike)}
    found = Finding(identity, Kind.VOTE, False, None, Stage.RUNTIME, None, message, evidence=evidence)
    return replace(check, findings=(*check.findings, found))


def _agree(one: Voter, other: Voter, references: References) -> bool:
    """Whether two runtimes give the same wrong values, wherever the first one is wrong."""
    first, second = _failures(one), _failures(other)
    if not first or set(first) != set(second):
        return False
    return all(_same(trial, second[label], references) for label, trial in first.items())


def _failures(voter: Voter) -> dict[str, Trial]:
    return {t.inputs.label: t for t in voter.steps[-1].judgement.failures}


def _same(one: Trial, other: Trial, references: References) -> bool:
    """Whether the outputs of two runtimes agree within the floor of the source at this input set."""
    number = next(i for i, inputs in enumerate(references.inputs) if inputs.label == one.inputs.label)
    expected = references.best(number).outputs
    if not one.outputs or len(one.outputs) != len(expected) or len(other.outputs) != len(expected):
        return False
    for reference, mine, theirs in zip(expected, one.outputs, other.outputs, strict=True):
        if not isinstance(mine, np.ndarray) or mine.shape != reference.value.shape:
            same = isinstance(theirs, np.ndarray) and isinstance(mine, np.ndarray) and np.array_equal(mine, theirs)
            if not same:
                return False
            continue
        value = mine.astype(reference.value.dtype)
        if compare_arithmetic(replace(reference, value=value, others=()), theirs).different:
            return False
    return True


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


__all__ = ["Voter", "settle"]
