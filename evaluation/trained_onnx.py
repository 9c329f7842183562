"""Trained ONNX models out of packages, as they are in every runtime and through every ONNX -> ONNX converter.

Keys are `PACKAGE/FILE/runtimes` and `PACKAGE/FILE/converters`. What a person found out about a result other than
faithful stands in `docs/results/trained-onnx/looked_at.toml` (model, then tool) and is merged into the page.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import onnx

from evaluation.backend import CONVERTERS, RUNTIMES
from evaluation.packaged import MODELS, Packaged, by_name, model_file, sha256
from evaluation.warm import checker
from evaluation.wording import circumstances, machine, number, table
from evaluation.zoo import check_summary
from trueport.core.errors import TrueportError
from trueport.core.result import Check
from trueport.core.taxonomy import Kind, Stage

GROUPS = {"runtimes": RUNTIMES, "converters": CONVERTERS}
VERDICTS = ("faithful", "divergent", "crashed", "no kernel", "inconclusive", "refused")
_PAGE = Path(__file__).parents[1] / "docs" / "trained-onnx.md"


def items() -> Iterator[str]:
    """Returns every model, first in the runtimes, then through the converters; the cheap ones come first."""
    for model in MODELS:
        for group in GROUPS:
            yield f"{model.name}/{group}"


def measure(key: str) -> dict[str, Any]:
    """Returns one outcome for each tool, and what identifies the model."""
    name, group = key.rsplit("/", 1)
    packaged = by_name(name)
    path = model_file(packaged)
    told: dict[str, Any] = {"machine": machine(), "model": _facts(packaged, path)}
    try:
        result = checker().check_path(str(path), **{group: GROUPS[group]})
    except TrueportError as error:
        said = {"outcome": "refused", "message": str(error).replace(str(path.parent), "")[:300]}
        return {**told, "tools": dict.fromkeys(GROUPS[group], said)}
    checks = zip(GROUPS[group], result.checks, strict=True)
    return {**told, "tools": {tool: _outcome(check, path) for tool, check in checks}}


def _facts(packaged: Packaged, path: Path) -> dict[str, Any]:
    model = onnx.load(str(path))
    opset = next((o.version for o in model.opset_import if o.domain in ("", "ai.onnx")), 0)
    return {
        "package": packaged.package, "version": packaged.version, "file": packaged.member, "sha256": sha256(path),
        "bytes": path.stat().st_size, "opset": opset, "nodes": len(model.graph.node), "what": packaged.what,
        "producer": f"{model.producer_name} {model.producer_version}".strip() or "-",
    }  # fmt: skip


def _outcome(check: Check, path: Path) -> dict[str, Any]:
    lacks = check.stage is Stage.RUNTIME and any(f.kind is Kind.NO_KERNEL for f in check.findings)
    told = check_summary(check)
    told["outcome"] = "no kernel" if lacks else str(check.verdict)
    told["memory_mb"] = check.peak_memory_mb
    for part in (told, *told["findings"]):
        for field in ("message", "explanation"):
            if field in part:
                part[field] = " ".join(part[field].replace(str(path.parent), "").split())[:400]
    return told


def write_up(records: list[dict[str, Any]], folder: Path) -> None:
    """Writes `docs/trained-onnx.md`."""
    known = {model.name for model in MODELS}
    chosen = [r for r in records if r["key"].rsplit("/", 1)[0] in known]
    if not chosen:
        return
    notes_file = folder / "looked_at.toml"
    notes = tomllib.loads(notes_file.read_text(encoding="utf-8")) if notes_file.exists() else {}
    tools: dict[str, dict[str, Any]] = {model.name: {} for model in MODELS}
    facts: dict[str, dict[str, Any]] = {}
    for record in chosen:
        name = record["key"].rsplit("/", 1)[0]
        tools[name].update(record["measured"]["tools"])
        facts[name] = record["measured"]["model"]
    tools = {name: told for name, told in tools.items() if told}
    counts = Counter(told["outcome"] for by_tool in tools.values() for told in by_tool.values())
    said = ", ".join(f"{counts[v]} {v}" for v in VERDICTS if counts[v])
    missing = len(list(items())) - len(chosen)
    _PAGE.write_text(
        "# Trained ONNX models\n\n"
        "Models that packages of the Python index ship, trained for real use. Each is run as it is in every runtime "
        "(the default check: float64 evaluation against the runtime), and goes through every ONNX -> ONNX converter "
        "to ONNX Runtime. Inputs are drawn from what each file declares. *No kernel*: the runtime does not implement "
        "an operator; that never counts against a converter.\n\n"
        f"{circumstances(chosen)} {len(tools)} models, {sum(counts.values())} checks: {said}."
        f"{f' {missing} of {len(list(items()))} runs are not measured yet.' if missing else ''}\n\n"
        f"## Models\n\n{_model_table(facts)}\n\n"
        f"## Verdicts\n\n{_verdict_table(tools)}\n\n"
        "## Every check that is not faithful\n\n"
        "The last column says how the result was confirmed without trueport, and whose it is.\n\n"
        f"{_open_table(tools, notes)}\n\n"
        "## Floors\n\nThe default check of each file in ONNX Runtime.\n\n"
        f"{_floor_table(tools)}\n\n"
        "`scripts/evaluate --cache FOLDER trained-onnx` measures it again; the records lie in "
        "`docs/results/trained-onnx`.\n",
        encoding="utf-8",
    )


def _model_table(facts: dict[str, dict[str, Any]]) -> str:
    head = ("model", "version", "trained for", "written by", "opset", "nodes", "MB", "SHA-256")
    return table(head, [
        (name, f["version"], f["what"], f["producer"], str(f["opset"]), f"{f['nodes']:,}", number(f["bytes"] / 1e6, 1),
         f"`{f['sha256'][:16]}`")
        for name, f in facts.items()
    ])  # fmt: skip


def _verdict_table(tools: dict[str, dict[str, Any]]) -> str:
    names = (*RUNTIMES, *CONVERTERS)
    return table(("model", *names), [
        (model, *(told[tool]["outcome"] if tool in told else "" for tool in names)) for model, told in tools.items()
    ])  # fmt: skip


def _open_table(tools: dict[str, dict[str, Any]], notes: dict[str, dict[str, str]]) -> str:
    head = ("model", "tool", "outcome", "stage", "message", "looked at")
    return table(head, [
        (model, tool, outcome["outcome"], str(outcome.get("stage") or "-"), _reason(outcome),
         notes.get(model, {}).get(tool, ""))
        for model, told in tools.items()
        for tool, outcome in told.items()
        if outcome["outcome"] != "faithful"
    ])  # fmt: skip


def _reason(outcome: dict[str, Any]) -> str:
    """What a finding says of a wrong result; why nothing is proven where that is the result."""
    return str(outcome["explanation" if outcome["outcome"] == "inconclusive" else "message"])[:260]


def _floor_table(tools: dict[str, dict[str, Any]]) -> str:
    head = ("model", "score", "resolution", "elements", "unstable", "inputs", "peak MB")
    rows = []
    for model, told in tools.items():
        check = told.get("onnxruntime")
        if check is None or "elements" not in check:
            continue
        elements = check["elements"]
        rows.append((
            model, number(check["score"]), number(check["resolution"]), f"{elements['compared']:,}",
            f"{elements['unstable']:,}", str(check["inputs"]), number(check["memory_mb"], 0),
        ))  # fmt: skip
    return table(head, rows)
