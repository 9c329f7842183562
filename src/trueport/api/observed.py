"""What a check observed of a failure, for its cause."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from trueport.bisect.road import Attribution, Step
from trueport.cause import Confidence, Evidence, Guess, Located
from trueport.core.result import Finding
from trueport.core.taxonomy import Kind, Role, Stage
from trueport.onnxgraph.interface import InterfaceError, read_interface
from trueport.onnxgraph.nodes import undefined_operators

if TYPE_CHECKING:
    from trueport.api.session import Session
    from trueport.api.walk import Walk


def evidence_of(
    session: Session,
    walk: Walk,
    steps: Sequence[Step],
    step: Step,
    attribution: Attribution,
    kind: Kind,
    error: BaseException | None,
    *,
    operators: Sequence[str] = (),
    located: Located | None = None,
) -> Evidence:
    """Returns what was observed.

    Args:
        session: of the check.
        walk: of the conversion.
        steps: of the road.
        step: that the verdict rests on.
        attribution: verdict and stage.
        kind: what differs, or how it failed.
        error: that was raised, or None.
        operators: at which a converter raised.
        located: the place, where it was found.
    """
    trials = step.judgement.trials
    failing = [t for t in trials if t.bad and t.counts]
    only_away = bool(failing) and any(t.inputs.regime == "example" for t in trials if not t.bad)
    return Evidence(
        attribution.verdict,
        attribution.stage,
        kind,
        classes_of(error),
        only_away=only_away,
        only_sizes=only_away and all(t.inputs.regime == "size" for t in failing),
        dynamic=bool(session.axes),
        misused=_misused(session, steps, error),
        no_kernel=step.facts.get("no_kernel") is not None,
        optimized=_level(steps, step),
        running=error is not None and any(t.error is error for t in trials),
        operators=tuple(operators),
        opsets=_opsets(walk) if attribution.stage is Stage.OPTIMIZATION else (),
        foreign=_foreign(walk, step),
        located=located,
    )


def located_of(finding: Finding) -> Located | None:
    """Returns the place that a finding names, None where it was not located."""
    place: dict[str, Any] | None = finding.evidence.get("located")
    if place is None:
        return None
    differs = place.get("differs")
    return Located(
        tuple(n.op_type for n in finding.nodes if n.role is Role.INTRODUCES),
        tuple(n.op_type for n in finding.nodes if n.role is Role.CONCERNED),
        Kind(differs) if differs else None,
        str(place.get("source_value", "")),
        str(place.get("made", "")),
        alone=place.get("how") in ("forced", "judged on the runtime's own values"),
    )


def cause_record(guessed: Guess) -> dict[str, Any]:
    """Returns what a finding's evidence says of its cause."""
    record: dict[str, Any] = {"cause": {"because": guessed.because, "confidence": str(guessed.confidence)}}
    if guessed.confidence is Confidence.LOW:
        record["cause_is_a_guess"] = guessed.because
    return record


def classes_of(error: BaseException | None) -> tuple[str, ...]:
    """Returns the class names of an exception and of those it came from, outermost first."""
    names = []
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        names.append(type(error).__name__)
        error = error.__cause__ or error.__context__
    return tuple(names)


def _misused(session: Session, steps: Sequence[Step], error: BaseException | None) -> str:
    told = next((message for kind, message in session.source.notes() if kind is Kind.TRAINING_MODE), None)
    if told is not None:
        return told
    rejected = any(s.complaints for s in steps if s.stage is Stage.VALIDATION)
    if isinstance(error, InterfaceError) and rejected:
        return "the names that were asked for make a file that the checker rejects"
    return ""


def _level(steps: Sequence[Step], step: Step) -> str:
    """The first level of the runtime that fails, where a lower one does not."""
    levels = [s for s in steps if s.stage is Stage.RUNTIME]
    return step.name if step in levels and levels[0] is not step and not levels[0].bad else ""


def _opsets(walk: Walk) -> tuple[int, ...]:
    """The operator sets before and after the wrong step, where it changed them."""
    right, wrong = walk.right, walk.wrong
    if right is None or wrong is None or right.model is None or wrong.model is None:
        return ()
    found = tuple(read_interface(c.model).opset or 0 for c in (right, wrong))
    return found if found[0] != found[1] else ()


def _foreign(walk: Walk, step: Step) -> tuple[str, ...]:
    if walk.file is None or walk.file.model is None or step.stage not in (Stage.VALIDATION, Stage.RUNTIME):
        return ()
    return undefined_operators(walk.file.model)
