"""Options that contradict themselves or would accept anything are refused wherever they come from."""

from __future__ import annotations

import math

import msgspec
import pytest

from trueport.core.errors import UsageError
from trueport.core.options import CheckOptions, DynamicAxis, Tolerance, ToleranceKind


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"samples": 0}, "samples"),
        ({"threads": 0}, "threads"),
        ({"seed": -1}, "seed"),
        ({"opset": 0}, "opset"),
        ({"memory_mb": 0}, "memory_mb"),
        ({"timeout_s": 0.0}, "timeout_s"),
        ({"timeout_s": math.nan}, "timeout_s"),
        ({"timeout_s": math.inf}, "timeout_s"),
        ({"runtimes": ()}, "runtime"),
        ({"name_map": {"x": "y"}}, "candidate"),
        ({"metric": "m.py:f"}, "together"),
        ({"data": "d.npz"}, "together"),
        ({"dynamic": (DynamicAxis("x", 0, "n"), DynamicAxis("x", 0, "m"))}, "twice"),
        ({"dynamic": (DynamicAxis("x", 0, "n", 1, 4), DynamicAxis("y", 0, "n", 1, 8))}, "two ranges"),
    ],
)
def test_refused(changes, message):
    with pytest.raises(UsageError, match=message):
        CheckOptions(**changes)


@pytest.mark.parametrize("values", [(-1.0, 0.0), (0.0, math.inf), (math.nan, 0.0)])
def test_tolerance_that_accepts_anything_is_refused(values):
    with pytest.raises(UsageError, match="finite"):
        Tolerance(ToleranceKind.FIXED, *values)


def test_measured_tolerance_with_numbers_is_refused():
    with pytest.raises(UsageError, match="measured"):
        Tolerance(ToleranceKind.MEASURED, rtol=1e-3)


@pytest.mark.parametrize("values", [(-1, 1, None), (0, -1, None), (0, 5, 4)])
def test_axis_that_cannot_be_is_refused(values):
    axis, minimum, maximum = values
    with pytest.raises(UsageError):
        DynamicAxis("x", axis, "n", minimum, maximum)


def test_json_round_trip():
    options = CheckOptions(
        input_shapes={"x": (1, 3)},
        dynamic=(DynamicAxis("x", 0, "n", 2, None),),
        tolerance=Tolerance(ToleranceKind.FIXED, 1e-3, 1e-5),
        timeout_s=None,
        memory_mb=None,
    )
    assert msgspec.json.decode(msgspec.json.encode(options), type=CheckOptions) == options


def test_defaults_need_no_arguments():
    assert CheckOptions().to_arguments() == []
