"""Each seeded fault does what it says in the stage it names, shown with plain tools, and leaves nothing behind."""

import logging
import subprocess
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnxruntime as ort
import pytest
import torch
from torch.utils import _pytree as pytree

from tests.quality.seeded_faults import FAULTS, models, plant
from tests.quality.seeded_faults.fault import DYNAMO, LOAD_MODEL, nothing
from tests.quality.seeded_faults.stages import Attribution, Progress, attribute

ROOT = Path(__file__).resolve().parents[2]
STAYS_ALIVE = [name for name, fault in FAULTS.items() if not fault.ends_process]
ENDS_PROCESS = [name for name, fault in FAULTS.items() if fault.ends_process]
IN_THE_MODEL = [name for name, fault in FAULTS.items() if fault.plant is nothing]
SUBJECTS = {(FAULTS[name].converter, FAULTS[name].build): name for name in FAULTS if name not in IN_THE_MODEL}
HANGS = 9


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    logging.disable(logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
    logging.disable(logging.NOTSET)


def test_every_stage_has_at_least_five_faults() -> None:
    counts = Counter((fault.converter, fault.stage) for fault in FAULTS.values())
    assert len(counts) == 12
    assert min(counts.values()) >= 5


def test_every_fault_has_a_factory_of_its_name() -> None:
    assert {name.replace("-", "_") for name in FAULTS} <= set(dir(models))
    with pytest.raises(AttributeError, match="no seeded fault"):
        models.no_such_fault  # noqa: B018 - the access is the test


@pytest.mark.slow
@pytest.mark.parametrize("name", SUBJECTS.values())
def test_nothing_is_wrong_unless_planted(name: str) -> None:
    assert attribute(FAULTS[name], Progress()).stage is None


@pytest.mark.slow
@pytest.mark.parametrize("name", STAYS_ALIVE)
def test_planted_fault_shows_in_its_stage(name: str) -> None:
    with plant(name):
        found = attribute(FAULTS[name], Progress())
    assert found == Attribution(FAULTS[name].stage, FAULTS[name].symptom)


@pytest.mark.slow
@pytest.mark.parametrize("name", ENDS_PROCESS)
def test_deadly_fault_ends_its_process_in_its_stage(name: str) -> None:
    # A hang is shown by what it waits with.
    code = (
        "import os, time; time.sleep = lambda seconds: os._exit(9);"
        f"from tests.quality.seeded_faults.stages import main; main({name!r})"
    )
    command = [sys.executable, "-W", "ignore", "-c", code]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    expected = {"exits": 7, "hangs": HANGS, "segfaults": -11}
    assert ended.returncode == expected[name.rsplit("-", 1)[1]], ended.stderr
    assert ended.stderr.split()[-1] == FAULTS[name].stage


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in STAYS_ALIVE if FAULTS[name].symptom == "wrong-model"])
def test_exporter_as_users_call_it_is_hit(name: str, tmp_path: Path) -> None:
    fault = FAULTS[name]
    module, args = fault.build(0)
    other = fault.build(1)[1]
    reference = [[np.asarray(leaf.detach()) for leaf in pytree.tree_leaves(module(*given))] for given in (args, other)]
    path = tmp_path / "model.onnx"
    with plant(name):
        torch.onnx.export(module, args, str(path), dynamo=fault.converter == DYNAMO, verbose=False)
        session = ort.InferenceSession(str(path), providers=["CPUExecutionProvider"])
        names = [value.name for value in session.get_inputs()]
        candidate = [
            session.run(None, dict(zip(names, (arg.numpy() for arg in given), strict=True))) for given in (args, other)
        ]
    assert not all(
        len(a) == len(b)
        and all(x.dtype == y.dtype and x.shape == y.shape for x, y in zip(a, b, strict=True))
        and all(np.allclose(x, y, rtol=1e-6, atol=1e-5 * np.abs(x).max()) for x, y in zip(a, b, strict=True))
        for a, b in zip(reference, candidate, strict=True)
    )


def test_faults_in_the_model_are_of_the_first_stage() -> None:
    assert {FAULTS[name].stage for name in IN_THE_MODEL} == {LOAD_MODEL}
