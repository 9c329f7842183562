"""Every oracle case through both exporters: verdict, scores of both lanes, and what other rules say.

Keys are `CASE/CONVERTER/SEED`. The truth of a case does not depend on trueport (`tests/quality/oracle_cases`). The
other rules see the example alone, as their tools do.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from tests.quality.judging import judge
from tests.quality.oracle_cases import CASES, OracleCase

from evaluation import oracle_report, plain_run, rules
from evaluation.wording import machine
from trueport.core.result import Check, StageRecord
from trueport.core.taxonomy import Lane, Stage, Status, Verdict
from trueport.oracle.compare import LARGEST_SCORE

SEEDS = (0, 1, 2)
CONVERTERS = ("torch-dynamo", "torch-script")


def items() -> Iterator[str]:
    """Returns seed 0 of all cases through both exporters, then the other seeds."""
    for seed in SEEDS:
        for converter in CONVERTERS:
            for name in CASES:
                yield f"{name}/{converter}/{seed}"


def measure(key: str) -> dict[str, Any]:
    """Returns what the check and the other rules say about one conversion."""
    name, converter, number = key.split("/")
    case, seed = CASES[name], int(number)
    torch.set_num_threads(1)
    module, args = case.build(seed)
    check = judge(module, args, converter=converter, seed=seed, dynamic_shapes=case.dynamic_shapes, name=name)
    return {**_truth(case), **_scores(check), **_others(case, converter, seed), "machine": machine()}


def _truth(case: OracleCase) -> dict[str, Any]:
    return {"right": case.right, "role": case.role, "table": case.table, "note": case.note}


def _scores(check: Check) -> dict[str, Any]:
    file = next((s for s in check.stages if s.stage is Stage.EXPORT), None)
    runtime = next((s for s in check.stages if s.stage is Stage.RUNTIME), None)
    crashed = check.verdict is Verdict.CRASHED and (runtime is None or runtime.status is Status.NOT_RUN)
    return {
        "verdict": check.verdict, "stage": check.stage, "crashed_in_exporter": crashed, "score": check.score,
        "meaning": _score(file) if file is not None and file.lane is Lane.MEANING else None,
        "arithmetic": _score(runtime), "resolution": check.resolution, "inputs": check.inputs_tried,
        "compared": check.elements.compared, "unstable": check.elements.unstable,
        "not_comparable": check.elements.not_comparable, "seconds": check.elapsed_s,
        "explanation": check.explanation,
        "exception": next((f.message for f in check.findings if f.kind == "exception"), None),
    }  # fmt: skip


def _score(record: StageRecord | None) -> float | None:
    """A stage that failed without a number is as far off as anything can be."""
    if record is None or record.status is Status.NOT_RUN:
        return None
    if record.score is None:
        return LARGEST_SCORE if record.status is Status.CRASHED else None
    return record.score


def _others(case: OracleCase, converter: str, seed: int) -> dict[str, Any]:
    module, args = case.build(seed)
    try:
        outputs = plain_run.run(module, args, converter=converter, dynamic_shapes=case.dynamic_shapes)
    except Exception as error:  # noqa: BLE001 - a conversion that fails is recorded as that
        return {"rules": None, "plain_error": f"{type(error).__name__}: {str(error)[:200]}"}
    found = rules.answers(outputs)
    return {"rules": {name: {"ratio": a.ratio, "different": a.different} for name, a in found.items()}}


def write_up(records: list[dict[str, Any]], folder: Path) -> None:
    """Writes tables and plots into the folder, and the tables of the explanation."""
    oracle_report.write(records, folder)
