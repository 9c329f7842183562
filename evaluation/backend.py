"""ONNX's own backend cases through every runtime as they are, and through every ONNX -> ONNX converter.

Keys are `KIND/CASE`. The expected outputs that come with a case are not used: the oracle judges against its own float64
evaluation, and whether that agrees with the expected outputs is a test (`test_onnx_node_cases.py`). What a person found
out about a divergent or crashed check stands in `docs/results/backend/looked_at.toml` and is merged into the tables.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import onnx
from onnx import numpy_helper

from evaluation.looked_at import Notes
from evaluation.warm import TOOLS, checker
from evaluation.wording import circumstances, machine, table
from trueport.core.errors import TrueportError
from trueport.core.result import Check
from trueport.core.taxonomy import Kind, Stage, Verdict
from trueport.isolation import RemoteError

JOBS = 2
LIMIT_S = 120.0
RUNTIMES = ("onnxruntime", "onnx-reference", "openvino")
CONVERTERS = ("onnxscript-optimizer", "onnxsim", "onnxslim", "onnxoptimizer", "onnx-version-converter")
KINDS = ("node", "simple", "pytorch-converted", "pytorch-operator")
OUTCOMES = ("faithful", "divergent", "crashed", "no kernel", "inconclusive", "refused", "fault")
_PAGE = Path(__file__).parents[1] / "docs" / "backend.md"


@cache
def cases() -> dict[str, Any]:
    """Returns ONNX's own test cases by key; node cases are generated, the others are files of the package."""
    from onnx.backend.test.loader import load_model_tests

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {f"{kind}/{case.name}": case for kind in KINDS for case in load_model_tests(kind=kind)}


def items() -> Iterator[str]:
    """Returns every case, in an order by which those measured so far are a fair sample of all."""
    yield from sorted(cases(), key=lambda key: hashlib.sha256(key.encode()).digest())


def measure(key: str) -> dict[str, Any]:
    """Returns one outcome for each runtime and each converter."""
    with tempfile.TemporaryDirectory() as folder:
        path = _written(cases()[key], Path(folder))
        return {
            "machine": machine(),
            **_outcomes(path, RUNTIMES, runtimes=RUNTIMES, samples=1),
            **_outcomes(path, CONVERTERS, converters=CONVERTERS, samples=1),
        }


def _outcomes(path: Path, names: tuple[str, ...], **options: Any) -> dict[str, Any]:
    try:
        result = checker(TOOLS, timeout_s=LIMIT_S).check_path(str(path), **options)
    except (TrueportError, RemoteError) as error:
        outcome = "refused" if isinstance(error, TrueportError) else "fault"
        said = {"outcome": outcome, "message": without_folders(str(error).replace(str(path), "model.onnx"))[:300]}
        return dict.fromkeys(names, said)
    return {name: _outcome(check) for name, check in zip(names, result.checks, strict=True)}


def _outcome(check: Check) -> dict[str, Any]:
    lacks = check.stage is Stage.RUNTIME and any(f.kind is Kind.NO_KERNEL for f in check.findings)
    outcome = "no kernel" if lacks else str(check.verdict)
    told: dict[str, Any] = {"outcome": outcome, "stage": check.stage, "seconds": round(check.elapsed_s, 3)}
    if check.verdict is not Verdict.FAITHFUL:
        told["message"] = without_folders(" ".join(check.explanation.split()))[:300]
    return told


def without_folders(text: str) -> str:
    """Returns a message in which files of the folder for temporary files are named without their folders.

    >>> without_folders(f"cannot read {tempfile.gettempdir()}/a7/b/model.onnx: empty")
    'cannot read model.onnx: empty'
    """
    return re.sub(re.escape(tempfile.gettempdir()) + r"/(?:[^\s/]+/)*", "", text)


def _written(case: Any, folder: Path) -> Path:
    """Writes a case as a test-case folder and returns its model."""
    if case.model_dir is not None:
        return Path(case.model_dir) / "model.onnx"
    path = folder / "model.onnx"
    onnx.save(case.model, str(path))
    for number, (inputs, _) in enumerate(case.data_sets or []):
        place = folder / f"test_data_set_{number}"
        place.mkdir()
        for i, (value, info) in enumerate(zip(inputs, case.model.graph.input, strict=False)):
            proto = _proto(value, info)
            if proto is not None:
                (place / f"input_{i}.pb").write_bytes(proto.SerializeToString())
    return path


def _proto(value: Any, info: onnx.ValueInfoProto) -> Any:
    if isinstance(value, onnx.TensorProto | onnx.SequenceProto | onnx.OptionalProto):
        return value
    with contextlib.suppress(Exception):
        if info.type.HasField("sequence_type"):
            return numpy_helper.from_list(value, info.name)
        if info.type.HasField("optional_type"):
            return numpy_helper.from_optional(value, info.name)
        return numpy_helper.from_array(value, info.name)
    return None


def write_up(records: list[dict[str, Any]], folder: Path) -> None:
    """Writes `docs/backend.md`."""
    if not records:
        return
    notes = Notes.read(folder / "looked_at.toml")
    rows = []
    for name in (*RUNTIMES, *CONVERTERS):
        counts = Counter(r["measured"][name]["outcome"] for r in records if name in r["measured"])
        rows.append((name, *(str(counts.get(o, 0)) for o in OUTCOMES), str(sum(counts.values()))))
    spent = sum(r["elapsed_s"] for r in records)
    missing = len(cases()) - len(records)
    _PAGE.write_text(
        "# ONNX's backend cases\n\n"
        "The node cases that the onnx package generates and the model cases that it ships, each run as it is in every "
        "runtime, and through every ONNX -> ONNX converter to ONNX Runtime. *No kernel*: the runtime does not "
        "implement an operator; that never counts against a converter. *Refused*: no check was possible. *Fault*: "
        "trueport failed.\n\n"
        f"{circumstances(records)} {len(records)} cases{f', {missing} not measured yet' if missing else ''}: "
        f"{spent / 60:.0f} minutes if one ran after the other; a run has {JOBS} at once.\n\n"
        f"{table(('tool', *OUTCOMES, 'cases'), rows)}\n\n"
        f"{notes.report(records, (*RUNTIMES, *CONVERTERS))}\n"
        "`scripts/evaluate backend` measures it again; the records lie in `docs/results/backend`, and what a person "
        "found in `looked_at.toml` beside them.\n",
        encoding="utf-8",
    )
