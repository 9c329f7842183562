"""The handed PyTorch cases: verdict and stage as their files state, each in a fresh process."""

import importlib.util
import os
from pathlib import Path
from types import ModuleType

import pytest

from tests.quality.judging import told
from trueport import CheckOptions, check_path
from trueport.core.taxonomy import Verdict

FOLDER = Path(os.environ.get("TRUEPORT_SHARED", Path(__file__).resolve().parents[3] / "shared")) / "cases"
FILES = ("torch_exporters", "ill_conditioned")


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
    options = CheckOptions(converters=(converter,), timeout_s=300.0)
    check = check_path(f"{FOLDER / file}.py:{case}", options).checks[0]
    verdict, stage = claim
    assert fits(check.verdict, verdict), told(check)
    if check.verdict in (Verdict.DIVERGENT, Verdict.CRASHED):
        assert fits(check.stage, stage), told(check)
