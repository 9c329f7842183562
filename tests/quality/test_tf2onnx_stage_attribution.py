"""Each fault planted in tf2onnx is attributed to its stage, and to its optimizer; nothing is wrong unless planted."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.quality.judging import told
from tests.quality.seeded_faults.tf2onnx_fault import TensorFlowFault
from tests.quality.seeded_faults.tf2onnx_faults import FAULTS
from tests.quality.seeded_faults.tf2onnx_subjects import arithmetic, network
from trueport import CheckOptions, check_path
from trueport.adapters.sources.registry import SourceRequest
from trueport.adapters.sources.tensorflow_setup import import_tensorflow
from trueport.api.session import Session
from trueport.core.result import Check
from trueport.core.taxonomy import Status, Verdict

MODELS = Path(__file__).parent / "seeded_faults" / "tf2onnx_models.py"
VERDICTS = {"wrong-model": Verdict.DIVERGENT, "crash": Verdict.CRASHED}
REQUEST = SourceRequest("<object>", trust_pickle=False, inputs=None, input_shapes={}, seed=0)
OPTIONS = CheckOptions(converters=("tf2onnx",), timeout_s=120.0)

SURVIVED = [pytest.param(fault, id=name) for name, fault in FAULTS.items() if not fault.ends_process]
DEADLY = [pytest.param(fault, id=name) for name, fault in FAULTS.items() if fault.ends_process]
pytestmark = pytest.mark.filterwarnings("ignore")


def check(model: Any) -> Check:
    from trueport.adapters.sources.tensorflow_subject import subject_of_tensorflow

    subject = subject_of_tensorflow(
        model, None, {}, None, name="planted", sha256="", request=REQUEST, where="the model"
    )
    return Session(subject, OPTIONS, lambda _: None).run().checks[0]


def test_every_stage_has_at_least_four_faults() -> None:
    counts = Counter(fault.stage for fault in FAULTS.values())
    assert len(counts) == 6
    assert min(counts.values()) >= 4


@pytest.mark.slow
@pytest.mark.parametrize("build", [network, arithmetic])
def test_nothing_is_wrong_unless_planted(build: Callable[[], Any]) -> None:
    import_tensorflow(1)
    found = check(build())
    assert found.verdict is Verdict.FAITHFUL, told(found)


@pytest.mark.slow
@pytest.mark.parametrize("fault", SURVIVED)
def test_a_fault_is_found_in_its_stage(fault: TensorFlowFault) -> None:
    import_tensorflow(1)
    model = fault.build()
    with fault.plant():
        found = check(model)
    assert (found.verdict, found.stage) == (VERDICTS[fault.symptom], fault.stage), told(found)
    if fault.checkpoint:
        first = next(s for s in found.stages if s.status in (Status.DIVERGED, Status.CRASHED))
        assert first.checkpoint == fault.checkpoint, told(found)


@pytest.mark.slow
@pytest.mark.parametrize("fault", DEADLY)
def test_a_lost_process_is_a_crash_of_the_stage_that_was_running(fault: TensorFlowFault) -> None:
    found = check_path(f"{MODELS}:{fault.name.replace('-', '_')}", OPTIONS).checks[0]
    assert (found.verdict, found.stage) == (Verdict.CRASHED, fault.stage), told(found)
