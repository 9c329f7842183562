"""Every model of the zoo through its exporters: with the zoo's dynamic axes, and the required ones static as well.

Keys are `NAME/CONVERTER/batch` and `NAME/CONVERTER/static`; the models of Keras go by `keras/NAME`. What a person found
out about a divergent, crashed or inconclusive check stands in `docs/results/zoo/confirmed.toml` and is merged into the
table.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from evaluation.warm import checker
from evaluation.wording import circumstances, machine, number, table
from trueport.adapters.sources import load_subject
from trueport.api.zoo import list_zoo
from trueport.core.result import Check, CheckResult

REQUIRED = ("bert", "gpt2", "t5", "vit", "llama", "whisper", "swin", "mamba")
CONVERTERS = {"hf": ("torch-dynamo", "torch-script"), "keras": ("tf2onnx",)}
"""Folder of the zoo -> what its models go through."""
_PAGE = Path(__file__).parents[1] / "docs" / "zoo.md"
_ZOO = "zoo:"


def items() -> Iterator[str]:
    """Returns the required models first, then all others with the zoo's dynamic axes."""
    for name in REQUIRED:
        for axes in ("batch", "static"):
            for converter in CONVERTERS["hf"]:
                yield f"{name}/{converter}/{axes}"
    for entry in list_zoo():
        folder, _, name = entry.name.removeprefix(_ZOO).partition("/")
        if name in REQUIRED or not entry.available:
            continue
        for converter in CONVERTERS.get(folder, ()):
            yield f"{name if folder == 'hf' else f'{folder}/{name}'}/{converter}/batch"


def measure(key: str) -> dict[str, Any]:
    """Returns what one check says."""
    name, converter, axes = key.rsplit("/", 2)
    model = f"{_ZOO}{name if '/' in name else f'hf/{name}'}"
    if axes == "batch":
        result = checker().check_path(model, converters=(converter,))
    else:
        subject = load_subject(model)
        example = subject.examples[0]
        result = checker().check(subject.model, example.args, example.kwargs, converters=(converter,))
    return {**summary(result), "machine": machine()}


def summary(result: CheckResult) -> dict[str, Any]:
    """Returns the first check of a result as JSON values, with its stages and findings in short."""
    return check_summary(result.checks[0])


def check_summary(check: Check) -> dict[str, Any]:
    """Returns a check as JSON values, with its stages and findings in short."""
    return {
        "verdict": check.verdict, "stage": check.stage, "cause": check.cause, "score": check.score,
        "resolution": check.resolution, "inputs": check.inputs_tried, "seconds": check.elapsed_s,
        "elements": {
            "compared": check.elements.compared, "unstable": check.elements.unstable,
            "not_comparable": check.elements.not_comparable,
        },
        "message": _first_message(check), "explanation": check.explanation, "material": _material(check),
        "stages": [
            {"stage": s.stage, "checkpoint": s.checkpoint, "status": s.status, "lane": s.lane, "score": s.score}
            for s in check.stages
        ],
        "findings": [
            {"kind": f.kind, "stage": f.stage, "material": f.material, "message": f.message, "input": f.input}
            for f in check.findings
        ],
    }  # fmt: skip


def _first_message(check: Check) -> str:
    """The message of the finding that the verdict rests on, else of the first one."""
    decisive = [f for f in check.findings if check.stage is not None and f.stage is check.stage]
    return next((f.message for f in (*decisive, *check.findings)), "")


def _material(check: Check) -> bool:
    return any(f.material for f in check.findings if check.stage is not None and f.stage is check.stage)


def write_up(records: list[dict[str, Any]], folder: Path) -> None:
    """Writes `docs/zoo.md`."""
    notes = confirmed(folder / "confirmed.toml")
    order = {key: place for place, key in enumerate(items())}
    chosen = sorted((r for r in records if r["key"] in order), key=lambda record: order[record["key"]])
    if not chosen:
        return
    counts = Counter(record["measured"]["verdict"] for record in chosen)
    said = ", ".join(f"{count} {verdict}" for verdict, count in counts.most_common())
    missing = len(order) - len(chosen)
    _PAGE.write_text(
        "# The zoo\n\n"
        "Real architectures of transformers and of Keras in small configurations with drawn weights, through their "
        "exporters to ONNX Runtime. *batch* is the zoo's own choice of dynamic axes (batch, and the length of texts), "
        "*static* none. The column *confirmed* says how a divergent or crashed verdict was shown to be real without "
        "trueport, and why an inconclusive one is none.\n\n"
        f"{circumstances(chosen)} {len(chosen)} checks: {said}."
        f"{f' {missing} are not measured yet.' if missing else ''}\n\n"
        f"{check_table(chosen, notes)}\n\n{_absent()}"
        "`scripts/evaluate zoo` measures it again; the records lie in `docs/results/zoo`.\n",
        encoding="utf-8",
    )


def confirmed(path: Path) -> dict[str, str]:
    """Returns what a person wrote about single checks."""
    return tomllib.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def check_table(records: Iterable[dict[str, Any]], notes: dict[str, str]) -> str:
    """Returns the Markdown table of checks, one a row."""
    head = ("model", "exporter", "axes", "verdict", "stage", "cause (guess)", "score", "resolution", "elements",
            "inputs", "s", "message", "confirmed")  # fmt: skip
    return table(head, [_row(record["key"], record["measured"], notes) for record in records])


def _row(key: str, measured: dict[str, Any], notes: dict[str, str]) -> Sequence[str]:
    elements = measured["elements"]
    quiet = measured["verdict"] == "faithful"
    left_out = elements["unstable"] + elements["not_comparable"]
    immaterial = " (not material)" if measured["verdict"] == "divergent" and not measured["material"] else ""
    return (
        *key.rsplit("/", 2), f"{measured['verdict']}{immaterial}", measured["stage"] or "-", measured["cause"] or "-",
        number(measured["score"]), number(measured["resolution"]),
        f"{elements['compared']:,}" + (f" (+{left_out:,} left out)" if left_out else ""),
        str(measured["inputs"]), number(measured["seconds"], 1),
        "" if quiet else _short(measured["message"]), notes.get(key, ""),
    )  # fmt: skip


def _short(text: str, longest: int = 160) -> str:
    line = " ".join(text.split())
    return line if len(line) <= longest else f"{line[:longest]} ..."


def _absent() -> str:
    lacking = [entry for entry in list_zoo() if not entry.available]
    if not lacking:
        return ""
    names = "; ".join(f"{entry.name} lacks {entry.missing}" for entry in lacking)
    return f"Not built here: {names}.\n\n"
