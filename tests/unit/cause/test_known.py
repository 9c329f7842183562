"""A known fault is named where everything in its signature is seen, and nowhere else."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from trueport.cause.known import KnownFault, Sighting, index, known_fault
from trueport.core.taxonomy import Kind, Stage


def sighting(fault: KnownFault) -> Sighting:
    """Returns a failure that is exactly the fault."""
    return Sighting(
        fault.stages[0],
        fault.kinds[0],
        (*fault.converters, None)[0],
        (*fault.runtimes, "")[0],
        (*fault.operators, "Identity"),
        fault.exceptions,
        fault.parts,
        fault.dtypes[:1],
    )


@pytest.mark.parametrize("fault", index(), ids=lambda f: f.tracker)
def test_each_fault_has_its_own_signature(fault: KnownFault) -> None:
    assert known_fault(sighting(fault)) is fault


@pytest.mark.parametrize("fault", index(), ids=lambda f: f.tracker)
def test_a_signature_tells_more_than_a_stage(fault: KnownFault) -> None:
    assert fault.operators or fault.parts
    assert fault.converters or fault.runtimes
    assert re.fullmatch(r"[\w.-]+/[\w.-]+#\d+", fault.tracker)
    assert fault.seen


@pytest.mark.parametrize("fault", index(), ids=lambda f: f.tracker)
def test_another_stage_tool_operator_or_part_is_another_fault(fault: KnownFault) -> None:
    seen = sighting(fault)
    assert known_fault(replace(seen, stage=Stage.VALIDATION)) is None
    assert known_fault(replace(seen, kind=Kind.OPSET)) is None
    assert known_fault(replace(seen, converter="another", runtime="another")) is None
    assert known_fault(replace(seen, operators=(), parts=())) is None


def test_a_failure_that_was_not_located_is_not_named() -> None:
    for converter in ("torch-script", "tf2onnx", "onnxoptimizer"):
        assert known_fault(Sighting(Stage.NODE_CONVERSION, Kind.VALUE, converter, dtypes=("int64",))) is None


def test_another_version_is_said() -> None:
    fault = index()[0]
    assert "installed" not in fault.told({fault.package: f"{fault.seen[0]}+cpu"})
    assert "installed: 0.1" in fault.told({fault.package: "0.1"})
