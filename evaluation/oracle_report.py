"""The oracle's results as Markdown: its own page, and the marked places of the explanation."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from evaluation import oracle_plots as plots
from evaluation import oracle_statistics as statistics
from evaluation.oracle_statistics import ARITHMETIC, BOTH, MEANING, SCORES
from evaluation.wording import circumstances, number, table
from trueport.oracle.thresholds import THRESHOLDS

Records = Sequence[dict[str, Any]]

_EXPLANATION = Path(__file__).parents[1] / "docs" / "explanation" / "oracle.md"
_HALVES = ("calibration", "test")
_TITLES = {
    "architecture-first": "The design's first table",
    "architecture-repaired": "The design's second table: cases that broke the first prototype",
    "architecture-meaning": "The design's third table: the meaning lane",
    "own": "Further cases",
}


def write(records: list[dict[str, Any]], folder: Path) -> None:
    """Writes README.md, plots, and the marked places of `docs/explanation/oracle.md`."""
    chosen = statistics.usable(records)
    if not chosen:
        return
    tested = half(chosen, "test")
    plots.roc(tested, folder, "Cases that set no threshold")
    plots.scores(chosen, folder)
    (folder / "README.md").write_text(_page(records, chosen), encoding="utf-8")
    text = _EXPLANATION.read_text(encoding="utf-8")
    for name, filling in _places(records, chosen).items():
        text = fill(text, name, filling)
    _EXPLANATION.write_text(text, encoding="utf-8")


def half(records: Records, role: str) -> list[dict[str, Any]]:
    """Returns the records of calibration or of test cases."""
    return [record for record in records if record["measured"]["role"] == role]


def fill(text: str, name: str, filling: str) -> str:
    """Returns the text with what stands between the marks of this name replaced."""
    marks = re.compile(rf"(<!-- measured: {re.escape(name)} -->\n).*?(<!-- /measured -->)", re.DOTALL)
    if not marks.search(text):
        raise ValueError(f"expected a place marked 'measured: {name}', found none")
    return marks.sub(lambda found: f"{found[1]}{filling}\n{found[2]}", text)


def _page(records: Records, chosen: Records) -> str:
    parts = [
        "# The oracle, measured",
        f"{circumstances(chosen)} {_coverage(records, chosen)}",
        "## Detection and false alarms",
        _HOW_COUNTED,
        *[f"### {role.capitalize()} cases\n\n{_rates(half(chosen, role))}" for role in _HALVES],
        "## Margins",
        _margins(chosen),
        "## Separation",
        "Area under the ROC curve over conversions.",
        _areas(chosen),
        "![ROC curves of the test cases](roc.svg)",
        "![Scores of right and wrong conversions](scores.svg)",
        "## Verdicts that are not the truth",
        _mistakes(chosen),
        *[f"## {title}\n\n{_scores(chosen, name)}" for name, title in _TITLES.items()],
        "## Left out",
        _left_out(records, chosen),
    ]
    return "\n\n".join(parts) + "\n"


_HOW_COUNTED = (
    "A case is one model with a known truth; it is converted by both exporters with up to three seeds. A wrong case "
    "counts as detected if *every* one of its conversions is called different, a right one as a false alarm if *any* "
    "is. Intervals are Wilson's, 95 %, over cases. The other rules see the example alone, as their tools do; trueport "
    "draws inputs of its own, which is part of why it finds more."
)


_FIRST_LOOK = (
    "A score that a few draws acquit is that first look's; only above the threshold are more draws made and the file's "
    "own operators asked. A largest right score just below the threshold is therefore no tail that ends there by luck: "
    "looked at closely, winograd-f4 scores 0.9 to 1.3 (seeds 0 to 2). bilinear-interpolation stays at 21 to 26: ONNX "
    "Runtime computes its weights from float32 coordinates, for which there is no budget."
)


def _coverage(records: Records, chosen: Records) -> str:
    seeds = sorted({str(r["key"]).rsplit("/", 1)[1] for r in chosen})
    cases = len({statistics.case_name(r) for r in chosen})
    return (
        f"{len(chosen)} conversions of {cases} cases, seed{'s' if len(seeds) > 1 else ''} {', '.join(seeds)}; "
        f"{len(records) - len(chosen)} more are left out because the exporter raised or gets the case wrong itself."
    )


def _rates(records: Records) -> str:
    undecided = Counter(r["measured"]["right"] for r in records if r["measured"]["verdict"] == "inconclusive")
    rows = [
        (name, str(statistics.detection(records, name)), str(statistics.false_alarms(records, name)),
         f"{undecided[False]} / {undecided[True]}" if name == BOTH else "-")
        for name in SCORES
    ]  # fmt: skip
    return table(("rule", "wrong cases detected", "right cases called different", "undecided (wrong / right)"), rows)


def _margins(records: Records) -> str:
    rows = []
    for role in _HALVES:
        for name in (BOTH, MEANING, ARITHMETIC):
            right, wrong = statistics.margins(half(records, role), name)
            rows.append((role, name, number(right[0]), right[1], number(wrong[0]), wrong[1]))
    found = table(("cases", "score", "largest right", "where", "smallest wrong", "where"), rows)
    return f"{found}\n\n{_FIRST_LOOK}"


def _areas(records: Records) -> str:
    def areas(name: str) -> list[str]:
        values = [statistics.separation(half(records, role), name) for role in _HALVES]
        return ["-" if value is None else f"{value:.4f}" for value in values]

    return table(("rule", *_HALVES), [(name, *areas(name)) for name in SCORES])


def _mistakes(records: Records) -> str:
    rows = []
    for record in records:
        m = record["measured"]
        truth = "faithful" if m["right"] else "divergent"
        if m["verdict"] != truth:
            rows.append((record["key"], m["role"], truth, m["verdict"], number(m["meaning"]), number(m["arithmetic"]),
                         m["explanation"]))  # fmt: skip
    head = ("conversion", "half", "truth", "verdict", "meaning", "arithmetic", "explanation")
    return table(head, rows) if rows else "None."


def _scores(records: Records, name: str) -> str:
    groups: dict[tuple[bool, str, str], list[dict[str, Any]]] = defaultdict(list)
    for record in records:
        case, converter, _ = record["key"].split("/")
        if record["measured"]["table"] == name:
            groups[not record["measured"]["right"], case, converter].append(record["measured"])
    rows = [_score_row(key, groups[key]) for key in sorted(groups)]
    head = ("truth", "case", "exporter", "seeds", "meaning", "arithmetic", "verdict", "stage", "max abs difference")
    return table(head, rows)


def _score_row(key: tuple[bool, str, str], found: list[dict[str, Any]]) -> tuple[str, ...]:
    wrong, case, converter = key
    worst = min if wrong else max

    def extreme(score: str) -> str:
        values = [m[score] for m in found if m[score] is not None]
        return number(worst(values)) if values else "-"

    distance = max(m["rules"]["1e-7 absolute"]["ratio"] for m in found) * 1e-7
    return (
        "wrong" if wrong else "right", case, converter, str(len(found)), extreme("meaning"), extreme("arithmetic"),
        ", ".join(sorted({m["verdict"] for m in found})), ", ".join(sorted({m["stage"] or "-" for m in found})),
        number(distance),
    )  # fmt: skip


def _left_out(records: Records, chosen: Records) -> str:
    kept = {record["key"] for record in chosen}
    rows = [
        (record["key"], record["measured"]["verdict"], _why_left_out(record))
        for record in records
        if record["key"] not in kept
    ]
    return table(("conversion", "verdict", "why"), rows) if rows else "Nothing."


def _why_left_out(record: dict[str, Any]) -> str:
    case, converter, _ = record["key"].split("/")
    reason = statistics.MISCONVERTED.get((case, converter)) or record["measured"].get("plain_error") or "-"
    return str(reason)


def _places(records: Records, chosen: Records) -> dict[str, str]:
    tested = half(chosen, "test")
    where = "[all numbers](../results/oracle/README.md)"
    return {
        "thresholds": (
            f"Both thresholds are {THRESHOLDS.meaning:g} floors. They were set on the calibration half of the oracle "
            "cases and frozen. The test half measures that choice; the engines themselves were built with both halves "
            f"at hand. {circumstances(chosen)} {_coverage(records, chosen)} The largest score of a right and the "
            "smallest of a wrong conversion:\n\n"
            f"{_margins(chosen)}"
        ),
        "roc": (
            "Area under the ROC curve over conversions:\n\n"
            f"{_areas(chosen)}\n\n![ROC curves of the test cases](../results/oracle/roc.svg)\n\n"
            f"![Scores of right and wrong conversions](../results/oracle/scores.svg)\n\nSee {where}."
        ),
        "fixed-rules": f"{_HOW_COUNTED} On the test half:\n\n{_rates(tested)}\n\nSee {where}.",
    }
