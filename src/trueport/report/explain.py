"""The verdict in three sentences: how far off, compared with what rounding explains, where, and what was not seen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from trueport.core.result import Elements, Finding
from trueport.core.taxonomy import Kind, Lane, Verdict


@dataclass(frozen=True)
class Explained:
    """What an explanation is made from."""

    attribution: Any
    step: Any
    findings: tuple[Finding, ...]
    resolution: float | None
    elements: Elements
    reasons: tuple[str, ...]
    references: Any
    converted: bool = True

    @property
    def model(self) -> str:
        """What was compared with the source."""
        return "the converted model" if self.converted else "the runtime"


def explain(told: Explained) -> str:
    """Returns two or three sentences in plain words."""
    verdict = told.attribution.verdict
    first = {
        Verdict.FAITHFUL: _faithful,
        Verdict.DIVERGENT: _divergent,
        Verdict.CRASHED: _crashed,
        Verdict.INCONCLUSIVE: _inconclusive,
    }[verdict](told)
    return " ".join([*first, _unseen(told)] if told.elements.compared else first)


def _score(told: Explained) -> float:
    return float(told.step.judgement.score or 0.0) if told.step is not None else 0.0


def _tries(told: Explained) -> str:
    count = len(told.references.inputs)
    dropped = len(told.references.refused)
    refused = f" ({dropped} more were refused by the source itself)" if dropped else ""
    return f"{count} input set{'s' if count != 1 else ''}{refused}"


def _faithful(told: Explained) -> list[str]:
    lane = told.step.judgement.lane if told.step is not None else Lane.NONE
    yardstick = {Lane.MEANING: "float64 rounding", Lane.FIXED: "the fixed tolerance"}.get(lane, "rounding")
    return [
        f"{_sentence(told.model)} computes what the source computes: on {_tries(told)} no output is further off than "
        f"{_score(told):.2g} times what {yardstick} explains."
    ]


def _divergent(told: Explained) -> list[str]:
    finding = told.findings[0] if told.findings else None
    if finding is None:
        return [f"{_sentence(told.model)} differs from the source."]
    where = f"The first wrong checkpoint is '{told.attribution.step.name}' (stage {told.attribution.stage})."
    if finding.kind in (Kind.VALUE, Kind.NONFINITE):
        score = float(finding.evidence.get("score", 0.0))
        size = f"{score:,.3g} times" if score < 1e200 else "infinitely far beyond"
        hidden = (
            "" if finding.material else " Rounding in the model's own type hides the difference on every input tried."
        )
        return [f"{_sentence(finding.message)}, {size} what rounding explains.{hidden}", where]
    return [f"{_sentence(finding.message)}.", where]


def _crashed(told: Explained) -> list[str]:
    finding = told.findings[0] if told.findings else None
    message = _sentence(finding.message) if finding is not None else "The conversion failed"
    step = told.attribution.step
    if step is None or step.error is not None:
        return [f"{message}.", f"The conversion ended in stage {told.attribution.stage}."]
    return [f"{message}.", f"The first checkpoint that fails is '{step.name}' (stage {told.attribution.stage})."]


def _inconclusive(told: Explained) -> list[str]:
    reasons = "; ".join(told.reasons) or "nothing could be compared"
    return [f"No difference was found on {_tries(told)}, but that proves nothing: {reasons}."]


def _sentence(text: str) -> str:
    return (text[:1].upper() + text[1:]).rstrip(". ")


def _unseen(told: Explained) -> str:
    e = told.elements
    if told.resolution is None:
        seen = "No relative error could have been seen in some output"
    elif told.resolution == 0:
        seen = "Any difference in the compared elements would have been seen"
    else:
        seen = f"A relative error below {told.resolution:.1e} of a whole output would have gone unseen"
    unstable = (
        f", and {e.unstable} of {e.compared + e.unstable + e.not_comparable} elements hang on rounding"
        if e.unstable
        else ""
    )
    return f"{seen}{unstable}."
