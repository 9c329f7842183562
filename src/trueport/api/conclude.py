"""From the steps of one conversion to a `Check`: verdict, findings, explanation, record."""

from __future__ import annotations

import resource
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trueport.adapters.protocols import Converter, Runtime
from trueport.api import findings as observed
from trueport.api.walk import Walk
from trueport.bisect.judge import Judgement, Trial
from trueport.bisect.references import EDGES, References
from trueport.bisect.road import Attribution, Step, attribute
from trueport.core.options import ToleranceKind
from trueport.core.result import Check, Elements, Finding, Floor, StageRecord
from trueport.core.taxonomy import Lane, Stage, Status, Verdict
from trueport.core.versions import base_versions
from trueport.oracle.compare import LARGEST_SCORE
from trueport.oracle.thresholds import THRESHOLDS
from trueport.oracle.units import float_type
from trueport.report.explain import Explained, explain

if TYPE_CHECKING:
    from trueport.api.session import Session


@dataclass(frozen=True)
class Coverage:
    """What could be compared at all.

    Attributes:
        elements: counts over all outputs and input sets.
        resolution: smallest relative error that every output would have shown somewhere; None where one shows none.
        least_comparable: smallest share of comparable elements among the outputs.
        dead: outputs that are zero throughout, so that no relative error shows.
    """

    elements: Elements
    resolution: float | None
    least_comparable: float
    dead: tuple[str, ...]


def check(
    session: Session,
    walk: Walk,
    steps: list[Step],
    *,
    converter: Converter,
    converter_name: str | None,
    runtime: Runtime,
    elapsed_s: float,
) -> Check:
    """Returns the finished check."""
    references = session.references
    assert references is not None
    if session.options.tolerance.kind is ToleranceKind.FIXED:
        steps = [s for s in steps if s.stage is Stage.RUNTIME or s.error is not None] or steps
    attribution = _arbitrated(session, steps, runtime)
    coverage = measure(steps, references)
    hidden = observed.hidden_operators(session, walk)
    as_it_is = walk.file is not None and walk.file.is_source
    reasons = doubts(session, attribution, coverage, steps)
    reasons += _further_doubts(session, runtime, hidden, as_it_is=as_it_is, others=bool(reasons))
    settled = _settled(session, attribution, reasons)
    found = observed.collect(session, walk, steps, settled, converter, converter_name, coverage, reasons, hidden)
    main = next((f for f in found if f.stage is settled.stage and f.cause is not None), None)
    decisive = decisive_step(steps)
    return Check(
        converter=converter_name,
        runtime=runtime.name,
        options=observed.option_record(session.options),
        verdict=settled.verdict,
        symptom=settled.symptom,
        stage=settled.stage,
        cause=main.cause if main is not None and settled.stage is not None else None,
        score=decisive.judgement.score if decisive is not None else None,
        floor=_floor(session, decisive, references),
        resolution=coverage.resolution,
        inputs_tried=len(references.inputs),
        elements=coverage.elements,
        stages=tuple(_record(s) for s in _all_stages(steps, converter, runtime)),
        findings=tuple(found),
        explanation=explain(_told(session, settled, decisive, found, coverage, reasons, converted=not as_it_is)),
        elapsed_s=elapsed_s,
        peak_memory_mb=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        versions={**base_versions(), **converter.versions(), **runtime.versions()},
        seed=session.options.seed,
        repeat=repeat_command(session, converter_name, runtime.name),
    )


def _told(
    session: Session, settled: Attribution, decisive: Step | None, found: Sequence[Finding], coverage: Coverage,
    reasons: Sequence[str], *, converted: bool,
) -> Explained:  # fmt: skip
    return Explained(
        settled, decisive, tuple(found), coverage.resolution, coverage.elements, tuple(reasons), session.references,
        converted=converted,
    )  # fmt: skip


def _further_doubts(
    session: Session, runtime: Runtime, hidden: observed.Hidden, *, as_it_is: bool, others: bool
) -> list[str]:
    """Returns what stands against a verdict besides the comparison itself."""
    if session.source.stand_in == runtime.name and as_it_is:
        return [f"there is no float64 evaluation, and {runtime.name} cannot be its own judge"]
    if hidden.untested and not others:
        return [f"{len(hidden.untested)} operators show in no output and were not found in the file by value"]
    return []


def _arbitrated(session: Session, steps: Sequence[Step], runtime: Runtime) -> Attribution:
    """Returns what the steps say; where another runtime stands in for float64, a difference between the two is open."""
    attribution = attribute(steps, whole_file=session.options.candidate is not None)
    alone = session.source.stand_in not in (None, runtime.name)
    if alone and attribution.verdict is Verdict.DIVERGENT and attribution.stage is Stage.RUNTIME:
        return Attribution(Verdict.INCONCLUSIVE, None, None, attribution.step)
    return attribution


def _settled(session: Session, attribution: Attribution, reasons: Sequence[str]) -> Attribution:
    """Returns the verdict that the evidence carries: what proves nothing is `inconclusive`."""
    assert session.references is not None
    verdict, stage = attribution.verdict, attribution.stage
    unproven = verdict is Verdict.FAITHFUL and bool(reasons)
    if unproven or (verdict is Verdict.DIVERGENT and not session.references.deterministic):
        verdict = Verdict.INCONCLUSIVE
    if session.options.tolerance.kind is ToleranceKind.FIXED and verdict is Verdict.DIVERGENT:
        stage = Stage.NOT_DISTINGUISHABLE
    if verdict in (Verdict.FAITHFUL, Verdict.INCONCLUSIVE):
        return Attribution(verdict, None, None, attribution.step)
    return Attribution(verdict, attribution.symptom, stage, attribution.step)


def decisive_step(steps: Sequence[Step]) -> Step | None:
    """Returns the step whose score speaks for the check: the worst of file and runtime, or the last one reached."""
    ends = [s for s in steps if s.stage in (Stage.EXPORT, Stage.RUNTIME) and s.judgement.score is not None]
    if ends:
        return max(ends, key=lambda s: s.judgement.score or 0.0)
    scored = [s for s in steps if s.judgement.score is not None]
    return scored[-1] if scored else None


def _floor(session: Session, step: Step | None, references: References) -> Floor:
    tolerance = session.options.tolerance
    if tolerance.kind is ToleranceKind.FIXED:
        return Floor(f"fixed {tolerance}", 0, 1.0)
    meaning = step is not None and step.judgement.lane is Lane.MEANING
    threshold = THRESHOLDS.meaning if meaning else THRESHOLDS.arithmetic
    return Floor(session.source.method, references.draws, threshold)


def _record(step: Step) -> StageRecord:
    judgement = step.judgement
    score = judgement.score
    if step.error is not None:
        score = None
    return StageRecord(
        step.stage, step.name, judgement.status, judgement.lane,
        None if score is None else min(score, LARGEST_SCORE), judgement.elapsed_s,
    )  # fmt: skip


def _all_stages(steps: Sequence[Step], converter: Converter, runtime: Runtime) -> list[Step]:
    """The steps, and what was planned and not reached."""
    reached = {s.name for s in steps}
    missing = Judgement(Status.NOT_RUN, Lane.NONE)
    planned = [
        *converter.plan, (Stage.VALIDATION, "checker and shape inference"), (Stage.RUNTIME, runtime.name)
    ]  # fmt: skip
    return [*steps, *(Step(stage, name, missing) for stage, name in planned if name not in reached)]


def measure(steps: Sequence[Step], references: References) -> Coverage:
    """Returns what was comparable, from the runtime's step (or the last one that compared) and the file's."""
    compared = [s for s in steps if any(t.comparisons for t in s.judgement.trials)]
    if not compared:
        return Coverage(Elements(not_comparable=_size(references)), None, 0.0, ())
    last = compared[-1].judgement
    file = next((s.judgement for s in reversed(compared) if s.judgement.lane is Lane.MEANING), last)
    names = [output.name for output in references.screens[0].outputs]
    shares, resolutions, dead = [], [], []
    for i, name in enumerate(names):
        shares.append(_share(last.trials, i, references))
        seen = [r for t in file.trials if t.counts for r in _resolution(t, i)]
        if seen:
            resolutions.append(min(seen))
        else:
            dead.append(name)
    whole = None if dead or not resolutions else max(resolutions)
    return Coverage(_count(last.trials, references), whole, min(shares, default=0.0), tuple(dead))


def _size(references: References) -> int:
    return sum(output.value.size for screen in references.screens for output in screen.outputs)


def _resolution(trial: Trial, index: int) -> list[float]:
    if index >= len(trial.comparisons) or trial.comparisons[index].resolution is None:
        return []
    value = trial.comparisons[index].resolution
    return [] if value is None else [value]


def _share(trials: Sequence[Trial], index: int, references: References) -> float:
    total = compared = 0
    for number, trial in enumerate(trials):
        if trial.inputs.regime in EDGES or index >= len(references.screens[number].outputs):
            continue
        total += references.screens[number].outputs[index].value.size
        compared += trial.comparisons[index].compared if index < len(trial.comparisons) else 0
    return compared / total if total else 1.0


def _count(trials: Sequence[Trial], references: References) -> Elements:
    compared = unstable = 0
    for trial in trials:
        compared += sum(c.compared for c in trial.comparisons)
        unstable += sum(c.unstable for c in trial.comparisons)
    return Elements(compared, unstable, max(_size(references) - compared - unstable, 0))


def doubts(session: Session, attribution: Attribution, coverage: Coverage, steps: Sequence[Step]) -> list[str]:
    """Returns why a check that found no difference still proves nothing; empty when it proves something."""
    references = session.references
    assert references is not None
    if attribution.verdict is Verdict.CRASHED:
        return []
    reasons = []
    if not references.deterministic:
        reasons.append("two runs of the source differ, so its values cannot be compared")
    if attribution.verdict is Verdict.INCONCLUSIVE and session.source.stand_in is not None:
        reasons.append(
            f"it differs from {session.source.stand_in}, which stands in for float64, and either may be wrong"
        )
    if not any(s.stage is Stage.RUNTIME for s in steps) and attribution.verdict is Verdict.FAITHFUL:
        reasons.append("the road ended before the runtime")
    if coverage.elements.compared == 0:
        reasons.append("no element of any output could be compared")
    elif coverage.least_comparable < THRESHOLDS.comparable:
        reasons.append(
            f"only {coverage.least_comparable:.0%} of an output's elements are far enough from a jump to be compared; "
            f"{THRESHOLDS.comparable:.0%} are needed"
        )
    if session.options.tolerance.kind is ToleranceKind.FIXED:
        return reasons
    if coverage.dead and coverage.elements.compared:
        reasons.append(f"output {', '.join(coverage.dead)} is zero throughout, so no relative error would show in it")
    elif coverage.resolution is not None and coverage.resolution > needed_resolution(references):
        reasons.append(
            f"a relative error below {coverage.resolution:.1e} would not have been seen; "
            f"{needed_resolution(references):.0e} is needed"
        )
    return reasons


def needed_resolution(references: References) -> float:
    """Returns the resolution that `faithful` needs: that of the source's coarsest output type."""
    units = [
        kind.unit_roundoff for output in references.screens[0].outputs if (kind := float_type(output.dtype)) is not None
    ]
    return THRESHOLDS.resolution_of(max(units, default=0.0))


def repeat_command(session: Session, converter: str | None, runtime: str) -> str:
    """Returns the command line that repeats this check alone."""
    from dataclasses import replace

    options = session.options
    if converter is not None:
        options = replace(options, converters=(converter,))
    arguments = replace(options, runtimes=(runtime,), save=None).to_arguments()
    if session.subject.framework == "onnx" and options.candidate is not None and options.metric is None:
        place = arguments.index("--candidate")
        del arguments[place : place + 2]
        return shlex.join(["trueport", "compare", session.subject.origin, options.candidate, *arguments])
    return shlex.join(["trueport", "check", session.subject.origin, *arguments])


__all__ = ["Coverage", "Finding", "check", "decisive_step", "doubts", "measure", "repeat_command"]
