"""Detection, false alarms and separation over conversions whose truth is known."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest
from sklearn.metrics import roc_auc_score

from evaluation.rules import RULES
from trueport.oracle.thresholds import THRESHOLDS

Record = dict[str, Any]

MEANING, ARITHMETIC, BOTH = "meaning lane", "arithmetic lane", "trueport, both lanes"
SCORES: dict[str, Callable[[Record], float | None]] = {
    BOTH: lambda m: max((s for s in (m["meaning"], m["arithmetic"]) if s is not None), default=None),
    MEANING: lambda m: m["meaning"],
    ARITHMETIC: lambda m: m["arithmetic"],
    **{name: lambda m, name=name: m["rules"][name]["ratio"] for name in RULES},
}
"""What measures the distance of one conversion, for each lane and rule."""

LIMITS: dict[str, float] = {
    BOTH: THRESHOLDS.meaning,
    MEANING: THRESHOLDS.meaning,
    ARITHMETIC: THRESHOLDS.arithmetic,
    **dict.fromkeys(RULES, 1.0),
}
"""From which distance a conversion is called different."""


MISCONVERTED: dict[tuple[str, str], str] = {
    ("angle-of-two-arguments", "torch-script"): (
        "the exporter writes atan2(y, x) as atan(y / x), which is NaN for two zeros where the source gives 0; a plain "
        "export and a default session show it"
    ),
}
"""Case and exporter -> how the exporter really gets a case wrong that is right by construction, confirmed by hand."""


@dataclass(frozen=True)
class Share:
    """A number of cases out of some, with its Wilson interval of 95 %."""

    count: int
    total: int

    def __str__(self) -> str:
        """Returns it as text."""
        if not self.total:
            return "-"
        interval = binomtest(self.count, self.total).proportion_ci(method="wilson")
        return f"{self.count} of {self.total} ({100 * interval.low:.0f}-{100 * interval.high:.0f} %)"


def usable(records: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Returns the records of conversions that ended and whose truth is that of their case."""
    ended = [r for r in records if not r["measured"]["crashed_in_exporter"] and r["measured"]["rules"]]
    return [r for r in ended if tuple(r["key"].split("/")[:2]) not in MISCONVERTED]


def case_name(record: dict[str, Any]) -> str:
    """Returns the name of the case that was converted."""
    return str(record["key"]).split("/", 1)[0]


def different(measured: Record, name: str) -> bool:
    """Whether this rule calls the conversion different; trueport by its verdict, all others by their own answer."""
    if name == BOTH:
        return measured["verdict"] in ("divergent", "crashed")
    if name in RULES:
        return bool(measured["rules"][name]["different"])
    score = SCORES[name](measured)
    return score is not None and score > LIMITS[name]


def detection(records: Sequence[dict[str, Any]], name: str) -> Share:
    """Returns how many wrong cases are called different in every conversion."""
    return _cases(records, name, right=False, combine=all)


def false_alarms(records: Sequence[dict[str, Any]], name: str) -> Share:
    """Returns how many right cases are called different in any conversion."""
    return _cases(records, name, right=True, combine=any)


def _cases(
    records: Sequence[dict[str, Any]], name: str, *, right: bool, combine: Callable[[Iterable[bool]], bool]
) -> Share:
    """Counts cases, not conversions: seeds and exporters of one case are no independent trials."""
    said: dict[str, list[bool]] = defaultdict(list)
    for record in records:
        if record["measured"]["right"] is right:
            said[case_name(record)].append(different(record["measured"], name))
    return Share(sum(combine(answers) for answers in said.values()), len(said))


def separation(records: Sequence[dict[str, Any]], name: str) -> float | None:
    """Returns the area under the ROC curve over conversions; None where one side is missing."""
    truth, scores = labelled(records, name)
    if truth.all() or not truth.any():
        return None
    return float(roc_auc_score(truth, scores))


def labelled(records: Sequence[dict[str, Any]], name: str) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """Returns for each conversion that has a score whether it is wrong, and the score."""
    pairs = [(not m["right"], s) for m in (r["measured"] for r in records) if (s := SCORES[name](m)) is not None]
    return np.array([wrong for wrong, _ in pairs], bool), np.array([score for _, score in pairs], float)


def margins(records: Sequence[dict[str, Any]], name: str) -> tuple[tuple[float, str], tuple[float, str]]:
    """Returns the largest score of a right and the smallest of a wrong conversion, with their keys."""
    scored = [(s, r["key"], r["measured"]["right"]) for r in records if (s := SCORES[name](r["measured"])) is not None]
    right = max(((s, key) for s, key, is_right in scored if is_right), default=(float("nan"), "-"))
    wrong = min(((s, key) for s, key, is_right in scored if not is_right), default=(float("nan"), "-"))
    return right, wrong
