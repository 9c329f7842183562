"""The handed cases: verdict and stage as their files state, each in a fresh process."""

import atexit
import importlib.util
import os
from functools import cache
from pathlib import Path
from types import ModuleType

import numpy as np
import onnx
import pytest

from tests.quality.judging import told
from trueport import Checker, CheckOptions, check_path
from trueport.core.taxonomy import Stage, Verdict

FOLDER = Path(os.environ.get("TRUEPORT_SHARED", Path(__file__).resolve().parents[3] / "shared")) / "cases"
FILES = ("torch_exporters", "ill_conditioned", "onnx_optimizers", "onnx_runtime", "tf2onnx_cases")
FRESH = ("torch_exporters", "ill_conditioned")
RUNTIMES = ("onnxruntime", "onnx-reference")


@cache
def warm() -> Checker:
    """One worker for the files whose tools keep no state; it confirms what it calls bad in a fresh one."""
    checker = Checker(timeout_s=300.0)
    atexit.register(checker.close)
    return checker


def load(name: str) -> ModuleType:
    path = FOLDER / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"handed_{name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def claims() -> list[object]:
    if not FOLDER.is_dir():
        return [pytest.param("", "", "", (), id="missing")]
    return [
        pytest.param(name, case, converter, claim, id=f"{case}-{converter}")
        for name in FILES
        for case, facts in load(name).CASES.items()
        for converter, claim in facts["expect"].items()
    ]


def fits(value: object, claim: object) -> bool:
    return value in claim if isinstance(claim, tuple) else value == claim


@pytest.mark.shared
@pytest.mark.parametrize(("file", "case", "converter", "claim"), claims())
def test_a_handed_case_is_judged_as_stated(file: str, case: str, converter: str, claim: tuple[object, object]) -> None:
    assert FOLDER.is_dir(), f"expected the handed cases in {FOLDER}, found none"
    chosen = {"runtimes": (converter,)} if converter in RUNTIMES else {"converters": (converter,)}
    options = CheckOptions(**chosen, timeout_s=300.0)
    path = f"{FOLDER / file}.py:{case}"
    # What an exporter of PyTorch does can depend on what its process exported before.
    result = check_path(path, options) if file in FRESH else warm().check_path(path, **chosen)
    check = result.checks[0]
    verdict, stage = claim
    assert fits(check.verdict, verdict), told(check)
    if check.verdict in (Verdict.DIVERGENT, Verdict.CRASHED):
        assert fits(check.stage, stage), told(check)


def pairs() -> list[object]:
    if not FOLDER.is_dir():
        return [pytest.param("", (), id="missing")]
    return [pytest.param(case, facts["expect"]["pair"], id=case) for case, facts in load("onnx_pairs").CASES.items()]


@pytest.mark.shared
@pytest.mark.parametrize(("case", "claim"), pairs())
def test_a_handed_pair_is_judged_as_stated(case: str, claim: tuple[object, object], tmp_path: Path) -> None:
    assert FOLDER.is_dir(), f"expected the handed cases in {FOLDER}, found none"
    reference, candidate, feeds = getattr(load("onnx_pairs"), case)()
    for name, model in (("reference", reference), ("candidate", candidate)):
        onnx.save(model, str(tmp_path / f"{name}.onnx"))
    np.savez(tmp_path / "feeds.npz", **feeds)
    given = {"candidate": str(tmp_path / "candidate.onnx"), "inputs": str(tmp_path / "feeds.npz")}
    check = warm().check_path(str(tmp_path / "reference.onnx"), **given).checks[0]
    assert fits(check.verdict, claim[0]), told(check)
    if check.verdict is Verdict.DIVERGENT:
        assert check.stage is Stage.NOT_DISTINGUISHABLE, told(check)
