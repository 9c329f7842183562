"""Each planted fault is attributed to the stage in which it was planted, and none is called faithful."""

from pathlib import Path

import pytest

from tests.quality.judging import judge, told
from tests.quality.seeded_faults import FAULTS, SeededFault
from trueport import CheckOptions, check_path
from trueport.core.taxonomy import Symptom, Verdict

MODELS = Path(__file__).parent / "seeded_faults" / "models.py"
VERDICTS = {"wrong-model": Verdict.DIVERGENT, "crash": Verdict.CRASHED}
TIMEOUT_S = 30.0

SURVIVED = [pytest.param(f, id=name) for name, f in FAULTS.items() if not f.ends_process]
DEADLY = [pytest.param(f, id=name) for name, f in FAULTS.items() if f.ends_process]


@pytest.mark.slow
@pytest.mark.parametrize("fault", SURVIVED)
def test_a_fault_is_found_in_its_stage(fault: SeededFault) -> None:
    module, args = fault.build(0)
    with fault.plant():
        check = judge(module, args, converter=fault.converter, name=fault.name)
    assert (check.verdict, check.stage) == (VERDICTS[fault.symptom], fault.stage), told(check)


@pytest.mark.slow
@pytest.mark.parametrize("fault", DEADLY)
def test_a_lost_process_is_a_crash_of_the_stage_that_was_running(fault: SeededFault) -> None:
    # The name goes through getattr of the file, which plants the fault in the worker.
    options = CheckOptions(converters=(fault.converter,), timeout_s=TIMEOUT_S)
    check = check_path(f"{MODELS}:{fault.name.replace('-', '_')}", options).checks[0]
    assert (check.verdict, check.stage) == (Verdict.CRASHED, fault.stage), told(check)
    assert check.symptom is (Symptom.HANG if fault.name.endswith("hangs") else Symptom.CRASH)
