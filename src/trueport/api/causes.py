"""The finding that explains a verdict, once its place is known: its cause, what to do, and whether it is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from trueport.api.afterlife import with_note
from trueport.api.observed import cause_record, evidence_of, located_of
from trueport.api.walk import Walk
from trueport.bisect.road import Attribution, Step, attribute
from trueport.cause import Circumstances, Evidence, Sighting, advice, guess, known_fault
from trueport.core.result import Check, Finding
from trueport.core.taxonomy import Kind, Role, Stage

if TYPE_CHECKING:
    from trueport.api.session import Session


def explained(session: Session, walk: Walk, steps: Sequence[Step], check: Check) -> Check:
    """Returns a failed check whose findings with a cause say what it rests on, what to do, and which fault it is.

    The verdict and the stage stay as they are, whatever becomes of this.

    Args:
        session: of the check.
        walk: of the conversion.
        steps: of the road, the runtime's last.
        check: after the search for the place.
    """
    step = attribute(steps, whole_file=session.options.candidate is not None).step
    if step is None:
        return check
    attribution = Attribution(check.verdict, check.symptom, check.stage, step)
    try:
        found = [
            _explained(session, walk, steps, attribution, check, f) if f.cause is not None else f
            for f in check.findings
        ]
    except Exception as error:  # noqa: BLE001 - the verdict does not hang on its explanation
        return with_note(check, f"the search for the cause ended with {type(error).__name__}: {error}")
    main = next((f for f in found if f.stage is check.stage and f.cause is not None), None)
    return replace(check, findings=tuple(found), cause=check.cause if main is None else main.cause)


def _explained(
    session: Session, walk: Walk, steps: Sequence[Step], attribution: Attribution, check: Check, finding: Finding
) -> Finding:
    step = attribution.step
    assert step is not None
    operators = (
        [n.op_type for n in finding.nodes if n.role is Role.CONCERNED] if "traceback" in finding.evidence else []
    )
    evidence = evidence_of(
        session, walk, steps, step, attribution, finding.kind, _error(step, finding),
        operators=operators, located=located_of(finding),
    )  # fmt: skip
    guessed = guess(evidence)
    record = {k: v for k, v in finding.evidence.items() if k != "cause_is_a_guess"} | cause_record(guessed)
    told = advice(evidence, guessed, _circumstances(session, check, finding))
    if told:
        record["advice"] = told
    known = known_fault(_sighting(session, check, finding, evidence))
    if known is not None:
        record["known"] = known.told(check.versions)
    return replace(finding, cause=guessed.cause, evidence=record)


def _error(step: Step, finding: Finding) -> BaseException | None:
    """The exception that a finding is about."""
    if finding.kind not in (Kind.EXCEPTION, Kind.NO_KERNEL):
        return None
    refused = step.facts.get("refused")
    held = step.error or (refused if isinstance(refused, BaseException) else None)
    return held or next((t.error for t in step.judgement.failures if t.error is not None), None)


def _circumstances(session: Session, check: Check, finding: Finding) -> Circumstances:
    place: dict[str, Any] = finding.evidence.get("located", {})
    frozen = next((f.message for f in check.findings if f.kind is Kind.DYNAMIC_AXIS), "")
    return Circumstances(
        check.converter,
        tuple(f"axis {a.axis} of '{a.input}'" for a in session.axes),
        tuple(place.get("cures_alone", ()))[:1],
        without_gradients=any(f.kind is Kind.NEEDS_NO_GRAD for f in check.findings),
        frozen_axis=frozen,
    )


def _sighting(session: Session, check: Check, finding: Finding, evidence: Evidence) -> Sighting:
    place: dict[str, Any] = finding.evidence.get("located", {})
    roles = (Role.INTRODUCES, Role.CONCERNED)
    made = str(place.get("source_value", "")).partition("[")[0]
    return Sighting(
        check.stage,
        finding.kind,
        check.converter,
        check.runtime if check.stage is Stage.RUNTIME else "",
        tuple(n.op_type for n in finding.nodes if n.role in roles),
        evidence.exceptions,
        tuple(place.get("parts", ())),
        (made,) if made else tuple(spec.example.dtype.name for spec in session.specs),
        check.versions,
    )
