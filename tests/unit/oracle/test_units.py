"""The types' constants, against NumPy and against rounding itself."""

from __future__ import annotations

import dataclasses

import ml_dtypes
import numpy as np
import pytest

from trueport.oracle.units import FLOAT_TYPES, float_type

NUMPY_TYPES = {
    "float64": np.float64, "float32": np.float32, "float16": np.float16, "bfloat16": ml_dtypes.bfloat16
}  # fmt: skip


@pytest.mark.parametrize("name", NUMPY_TYPES)
def test_constants_are_those_of_the_type(name):
    kind, info = FLOAT_TYPES[name], ml_dtypes.finfo(NUMPY_TYPES[name])
    assert kind.name == name
    assert kind.unit_roundoff == float(info.eps) / 2
    assert kind.largest == float(info.max)
    assert kind.smallest == float(info.smallest_subnormal)


@pytest.mark.parametrize("name", ["float32", "float16", "bfloat16"])
def test_overflow_is_where_rounding_gives_infinity(name):
    kind, made = FLOAT_TYPES[name], NUMPY_TYPES[name]
    with np.errstate(over="ignore"):
        assert np.isinf(float(np.float64(kind.overflow).astype(made)))
        assert float(np.float64(kind.overflow * (1 - kind.unit_roundoff / 8)).astype(made)) == kind.largest


@pytest.mark.parametrize("name", ["float32", "float16", "bfloat16"])
def test_underflow_is_where_rounding_gives_zero(name):
    kind, made = FLOAT_TYPES[name], NUMPY_TYPES[name]
    assert float(np.float64(kind.underflow).astype(made)) == 0
    assert float(np.float64(kind.underflow * (1 + 2.0**-10)).astype(made)) == kind.smallest


def test_wide_types_flush_subnormal_numbers_and_narrow_ones_do_not():
    for name in ("float64", "float32", "bfloat16"):
        assert FLOAT_TYPES[name].flushed == float(ml_dtypes.finfo(NUMPY_TYPES[name]).smallest_normal)
    assert FLOAT_TYPES["float16"].flushed == FLOAT_TYPES["float16"].smallest


def test_complex_types_have_the_unit_of_their_components():
    assert float_type("complex64") is FLOAT_TYPES["float32"]
    assert float_type("complex128") is FLOAT_TYPES["float64"]


@pytest.mark.parametrize("name", ["int64", "bool", "uint8", "object", "str", ""])
def test_what_has_no_rounding_is_no_floating_point_type(name):
    assert float_type(name) is None


def test_a_type_is_a_value():
    with pytest.raises(dataclasses.FrozenInstanceError):
        FLOAT_TYPES["float32"].unit_roundoff = 1.0
