"""Each fault planted in an ONNX optimizer is attributed to its stage; nothing is wrong unless planted."""

import hashlib
from collections import Counter

import pytest

from tests.quality.judging import told
from tests.quality.seeded_faults.onnx_optimizer import CONVERTER, FAULTS, OnnxFault, feeds, model
from trueport.api.session import Session
from trueport.core.options import CheckOptions
from trueport.core.result import Check
from trueport.core.subject import Example, Subject
from trueport.core.taxonomy import Verdict

VERDICTS = {"wrong-model": Verdict.DIVERGENT, "crash": Verdict.CRASHED}


def check() -> Check:
    made = model()
    digest = hashlib.sha256(made.SerializeToString(deterministic=True)).hexdigest()
    subject = Subject("network", "onnx", "<object>", digest, made, (Example(kwargs=feeds()),))
    return Session(subject, CheckOptions(converters=(CONVERTER,)), lambda _: None).run().checks[0]


def test_every_stage_has_at_least_four_faults() -> None:
    counts = Counter(fault.stage for fault in FAULTS)
    assert len(counts) == 5
    assert min(counts.values()) >= 4


def test_nothing_is_wrong_unless_planted() -> None:
    found = check()
    assert found.verdict is Verdict.FAITHFUL, told(found)


@pytest.mark.slow
@pytest.mark.parametrize("fault", [pytest.param(fault, id=fault.name) for fault in FAULTS])
def test_a_fault_is_found_in_its_stage(fault: OnnxFault) -> None:
    with fault.plant():
        found = check()
    assert (found.verdict, found.stage) == (VERDICTS[fault.symptom], fault.stage), told(found)
