"""Faults planted at known nodes of real architectures: is the node that is named the right one?

Keys are `MODEL|CONVERTER|STAGE|NUMBER` for one fault and end in `|pair` for two in one model, `|right` for none. The
faults are those of `tests/quality/localization`; a fixed sample of them is a test.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from tests.quality.localization.bench import Fault, Outcome, places
from tests.quality.localization.sample import BENCHES, Key, bench_of, keys, measure_key, pair, stages

from evaluation.wording import circumstances, machine, table
from trueport.core.taxonomy import Stage

_PAIR, _RIGHT = "pair", "right"
_PAIRS = 2
"""Models with two faults, of each bench."""


def items() -> Iterator[str]:
    """Returns the keys, those of one bench together."""
    singles = list(keys())
    for model, converter in BENCHES:
        yield f"{model}|{converter}|-|{_RIGHT}"
        yield from (str(key) for key in singles if (key.model, key.converter) == (model, converter))
        last = stages(model)[1]
        yield from (f"{model}|{converter}|{last}|{number}|{_PAIR}" for number in range(_PAIRS))


def measure(key: str) -> dict[str, Any]:
    """Returns what was planted and what a check says."""
    parts = key.split("|")
    if parts[-1] == _RIGHT:
        right = bench_of(parts[0], parts[1]).right
        named = sum(len(f.nodes) for f in places(right))
        return {"machine": machine(), "kind": _RIGHT, "verdict": right.verdict, "nodes_blamed": named}
    if parts[-1] == _PAIR:
        bench = bench_of(parts[0], parts[1])
        planted = pair(bench, Stage(parts[2]), int(parts[3]))
        outcome = bench.judge(planted) if planted else None
        return {"machine": machine(), "kind": _PAIR, **_told(planted, outcome)}
    planted, outcome = measure_key(Key.parse(key))
    return {"machine": machine(), "kind": "single", **_told(planted, outcome)}


def _told(planted: Sequence[Fault], outcome: Outcome | None) -> dict[str, Any]:
    faults = [
        {"stage": f.stage, "mutator": f.mutator, "operator": f.operator, "node": f.node, "truth": sorted(f.truth)}
        for f in planted
    ]
    if outcome is None:
        return {"faults": faults}
    return {
        "faults": faults, "verdict": outcome.verdict, "stage": outcome.stage, "ranks": list(outcome.ranks),
        "first_of_place": list(outcome.first_of_place), "strangers": list(outcome.strangers), "how": outcome.how,
        "nodes": [list(n) for n in outcome.nodes[:10]], "places": outcome.places, "message": outcome.message[:300],
        "seconds": round(outcome.seconds, 2),
    }  # fmt: skip


def write_up(records: list[dict[str, Any]], folder: Any) -> None:
    """Writes `docs/localization.md`."""
    del folder
    order = {key: place for place, key in enumerate(items())}
    chosen = sorted((r for r in records if r["key"] in order), key=lambda r: order[r["key"]])
    singles = [r for r in chosen if r["measured"]["kind"] == "single" and "ranks" in r["measured"]]
    if not singles:
        return
    pairs = [r for r in chosen if r["measured"]["kind"] == _PAIR and "ranks" in r["measured"]]
    rights = [r for r in chosen if r["measured"]["kind"] == _RIGHT]
    both = sum(all(r["measured"]["first_of_place"]) for r in pairs)
    blamed = sum(r["measured"]["nodes_blamed"] > 0 for r in rights)
    missing = len(order) - len(chosen)
    page = Path(__file__).parents[1] / "docs" / "localization.md"
    page.write_text(
        "# Localization\n\n"
        "A fault is planted at one node of a real architecture, in one stage of its conversion: an attribute, an "
        "operand, a weight, a number or the operator itself is wrong. A fault is used where it changes an output by "
        "at least 1e-4 of its size. The node is right if it is the source's node whose value the changed one has in "
        "the right conversion, or the changed node itself. *Others blamed*: some node that the fault is not at was "
        "said to introduce an error.\n\n"
        f"{circumstances(chosen)}{f' {missing} keys are not measured yet.' if missing else ''}\n\n"
        f"{table(_HEAD, _rows(singles))}\n\n"
        f"Two faults in one model: both are found, each first in its place, in {both} of {len(pairs)} models. "
        f"Right conversions in which a node is blamed: {blamed} of {len(rights)}.\n\n"
        "## Every fault whose node did not come first, or beside which another was blamed\n\n"
        f"{table(_MISSED, _missed(singles + pairs))}\n\n"
        "`scripts/evaluate localization` measures it again; the records lie in `docs/results/localization`.\n",
        encoding="utf-8",
    )


_HEAD = ("", "", "faults", "first", "among three", "others blamed", "verdict and stage right")
_MISSED = ("fault", "what", "right node", "named first", "verdict", "places")


def _rows(records: Sequence[dict[str, Any]]) -> Iterator[tuple[str, ...]]:
    def by(name: str, value: Callable[[dict[str, Any]], str]) -> Iterator[tuple[str, ...]]:
        for held in dict.fromkeys(map(value, records)):
            yield (name, held, *_shares([r["measured"] for r in records if value(r) == held]))

    yield from by("stage", lambda r: r["key"].split("|")[2])
    yield from by("converter", lambda r: r["key"].split("|")[1])
    yield from by("model", lambda r: r["key"].split("|")[0].removeprefix("exported:"))
    yield ("all", "", *_shares([r["measured"] for r in records]))


def _shares(measured: Sequence[dict[str, Any]]) -> tuple[str, ...]:
    def share(count: int) -> str:
        return f"{count} ({100 * count / len(measured):.0f} %)"

    ranks = [m["ranks"][0] for m in measured]
    stages = sum(m["verdict"] == "divergent" and m["stage"] == m["faults"][0]["stage"] for m in measured)
    return (
        str(len(measured)), share(sum(r == 1 for r in ranks)), share(sum(1 <= r <= 3 for r in ranks)),
        share(sum(bool(m["strangers"]) for m in measured)), share(stages),
    )  # fmt: skip


def _missed(records: Sequence[dict[str, Any]]) -> Iterator[tuple[str, ...]]:
    for record in records:
        m = record["measured"]
        if (
            m["first_of_place"] == [True] * len(m["ranks"])
            and not m["strangers"]
            and (len(m["ranks"]) > 1 or m["ranks"] == [1])
        ):
            continue
        faults = m["faults"]
        yield (
            record["key"].replace("|", " "), "; ".join(f"{f['mutator']} at {f['operator']}" for f in faults),
            "; ".join(", ".join([*f["truth"][:3], f["node"]]) for f in faults),
            m["nodes"][0][0] if m["nodes"] else "-", f"{m['verdict']} {m['stage']}", str(m["places"]),
        )  # fmt: skip
