"""What a comparison says besides yes or no."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from trueport.core.taxonomy import Kind
from trueport.oracle.compare import (
    LARGEST_SCORE,
    ReferenceOutput,
    compare_arithmetic,
    compare_fixed,
    compare_meaning,
    describe,
)
from trueport.oracle.thresholds import THRESHOLDS, Thresholds

VALUE = np.array([[1.0, -2.0], [4.0, 0.0]])


def _reference(value=VALUE, dtype="float32", meaning=1e-13, arithmetic=1e-6, unstable=None):
    value = np.asarray(value)
    full = np.ones(value.shape)
    taint = np.zeros(value.shape, bool) if unstable is None else np.asarray(unstable)
    return ReferenceOutput("y", dtype, value, full * meaning, full * arithmetic, taint, 4)


def _off(index, by):
    changed = VALUE.copy()
    changed[index] += by
    return changed


# ---------------------------------------------------------------------- structure before values


@pytest.mark.parametrize(
    ("came", "kind"),
    [
        (None, Kind.OUTPUT_COUNT),
        (3.0, Kind.OUTPUT_COUNT),
        ([1.0], Kind.OUTPUT_COUNT),
        (VALUE, Kind.DTYPE),
        (VALUE.astype(np.float32)[0], Kind.RANK),
        (VALUE.astype(np.float32)[:1], Kind.SHAPE),
        (VALUE.astype(np.float64)[0], Kind.DTYPE),
    ],
)
def test_each_difference_of_structure_is_its_own_kind(came, kind):
    told = compare_arithmetic(_reference(), came)
    assert told.kind is kind
    assert told.different
    assert told.score == LARGEST_SCORE
    assert told.compared == 0


def test_structure_says_what_was_expected_and_what_came():
    told = compare_arithmetic(_reference(), np.zeros((3,), np.int64))
    assert told.detail == "output 'y': expected float32[2,2], got int64[3]"


def test_meaning_expects_float64_for_floating_point_types():
    assert compare_meaning(_reference(), VALUE.astype(np.float32)).kind is Kind.DTYPE
    assert not compare_meaning(_reference(), VALUE.copy()).different


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (np.zeros((2, 3), np.int8), "int8[2,3]"),
        (np.array(1.0), "float64[]"),
        (None, "NoneType"),
        ([1], "list"),
    ],
)
def test_describe(value, text):
    assert describe(value) == text


# ---------------------------------------------------------------------- values


def test_meaning_score_is_distance_over_floor():
    told = compare_meaning(_reference(), _off((0, 1), 1e-10))
    assert told.kind is Kind.VALUE
    assert told.score == pytest.approx(1e3, rel=1e-3)
    assert told.index == (0, 1)
    assert told.reference == -2.0
    assert told.candidate == pytest.approx(-2.0)
    assert told.floor == pytest.approx(1e-13)
    assert (told.compared, told.unstable, told.wrong) == (4, 0, 1)


def test_arithmetic_allows_the_last_rounding_of_the_output():
    exact = np.array([1 / 3])
    rounded = exact.astype(np.float32)
    assert compare_arithmetic(_reference(exact, arithmetic=0.0), rounded).score == 0.0
    away = np.nextafter(np.nextafter(rounded, np.float32(1)), np.float32(1))
    assert compare_arithmetic(_reference(exact, arithmetic=0.0), away).different


def test_just_inside_and_just_outside_of_the_threshold():
    inside = _off((1, 0), THRESHOLDS.meaning * 0.99e-13)
    outside = _off((1, 0), THRESHOLDS.meaning * 1.05e-13)
    assert not compare_meaning(_reference(), inside).different
    assert compare_meaning(_reference(), outside).different


def test_thresholds_are_a_parameter():
    reference, came = _reference(), _off((0, 0), 2e-12)
    assert not compare_meaning(reference, came).different
    assert compare_meaning(reference, came, thresholds=Thresholds(meaning=10.0)).different


def test_a_floor_of_zero_forgives_nothing_and_does_not_divide_by_it():
    reference = _reference([0.0, 1.0], meaning=0.0)
    told = compare_meaning(reference, np.array([1e-300, 1.0]))
    assert told.kind is Kind.VALUE
    assert told.score == LARGEST_SCORE
    assert not compare_meaning(reference, np.array([0.0, 1.0])).different


def test_extra_floor_widens():
    reference, came = _reference(), _off((0, 0), 1e-9)
    assert compare_meaning(reference, came).different
    assert not compare_meaning(reference, came, extra_floor=np.full((2, 2), 1e-10)).different
    wide = _off((0, 0), 1e-3).astype(np.float32)
    assert compare_arithmetic(reference, wide).different
    assert not compare_arithmetic(reference, wide, extra_floor=np.full((2, 2), 1e-4)).different


def test_extra_floor_of_integers_forgives_nothing():
    reference = _reference(np.array([1, 2]), "int64", 0.0, 0.0)
    assert compare_meaning(reference, np.array([1, 3]), extra_floor=np.full(2, 10.0)).different


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_an_undefined_floor_never_acquits(bad):
    """An infinite or undefined floor would let every value pass."""
    reference = _reference(meaning=bad, arithmetic=bad)
    assert compare_meaning(reference, VALUE + 1).different
    assert compare_arithmetic(reference, (VALUE + 1).astype(np.float32)).different


@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_a_kind_of_its_own(special):
    came = VALUE.copy()
    came[1, 1] = special
    told = compare_meaning(_reference(), came)
    assert told.kind is Kind.NONFINITE
    assert told.score == LARGEST_SCORE
    assert told.candidate == str(special)


def test_a_wrong_number_beside_a_wrong_nan_is_a_difference_of_value():
    came = _off((0, 0), 1.0)
    came[1, 1] = np.nan
    assert compare_meaning(_reference(), came).kind is Kind.VALUE


def test_tainted_elements_are_counted_and_never_pass_or_fail():
    taint = np.array([[True, False], [False, False]])
    told = compare_meaning(_reference(unstable=taint), _off((0, 0), 5.0))
    assert not told.different
    assert (told.compared, told.unstable) == (3, 1)
    assert compare_meaning(_reference(unstable=taint), _off((1, 0), 5.0)).index == (1, 0)


def test_integers_are_compared_in_full():
    big = np.array([2**62, 2**53 + 1])
    reference = _reference(big, "int64", 0.0, 0.0)
    told = compare_meaning(reference, big - [0, 1])
    assert told.kind is Kind.VALUE
    assert told.index == (1,)
    assert (told.reference, told.candidate) == (2**53 + 1, 2**53)
    assert told.score == LARGEST_SCORE


def test_complex_values_are_compared_by_distance():
    reference = _reference(np.array([1 + 1j]), "complex64")
    assert compare_meaning(reference, np.array([1 - 1j])).different
    assert not compare_meaning(reference, np.array([1 + 1j])).different
    assert isinstance(compare_meaning(reference, np.array([1 - 1j])).candidate, str)


# ---------------------------------------------------------------------- resolution


def test_resolution_is_the_smallest_relative_error_that_would_have_been_seen():
    told = compare_meaning(_reference(np.array([1.0, 100.0])), np.array([1.0, 100.0]))
    assert told.resolution is not None
    scaled = np.array([1.0, 100.0])
    assert compare_meaning(_reference(scaled), scaled * (1 + 1.1 * told.resolution)).different
    assert not compare_meaning(_reference(scaled), scaled * (1 + 0.9 * told.resolution)).different


def test_an_output_of_zeros_shows_no_relative_error():
    zeros = np.zeros(3)
    assert compare_meaning(_reference(zeros), zeros).resolution is None


def test_an_output_that_is_tainted_throughout_shows_none():
    taint = np.ones(VALUE.shape, bool)
    assert compare_meaning(_reference(unstable=taint), VALUE).resolution is None


def test_an_empty_output_has_nothing_to_resolve():
    told = compare_meaning(_reference(np.zeros((0, 2))), np.zeros((0, 2)))
    assert (told.kind, told.compared, told.resolution) == (None, 0, 0.0)


# ---------------------------------------------------------------------- the fixed rule


def test_fixed_rule_is_that_of_numpy():
    rng = np.random.default_rng(3)
    want = rng.normal(size=500).astype(np.float32)
    for scale in (1e-6, 1e-4, 1e-3, 1e-2):
        came = (want + scale * rng.normal(size=500)).astype(np.float32)
        told = compare_fixed(_reference(want.astype(np.float64)), came, rtol=1e-3, atol=1e-4)
        assert told.different is not np.allclose(came, want.astype(np.float64), rtol=1e-3, atol=1e-4)
        assert told.wrong == int((~np.isclose(came, want.astype(np.float64), rtol=1e-3, atol=1e-4)).sum())


def test_fixed_rule_forgives_integers_nothing():
    reference = _reference(np.array([1000]), "int64")
    assert compare_fixed(reference, np.array([1001]), rtol=0.1, atol=10.0).different


def test_a_comparison_is_a_value():
    told = compare_meaning(_reference(), VALUE)
    with pytest.raises(dataclasses.FrozenInstanceError):
        told.score = 1.0


# ---------------------------------------------------------------------- either outcome of a decision


def _either(value, other, unstable, dtype="float32"):
    reference = _reference(value, dtype, unstable=unstable)
    return dataclasses.replace(reference, others=(np.asarray(other),))


@pytest.mark.parametrize(
    ("came", "compared", "unstable"),
    [([1.0, 5.0], 2, 0), ([2.0, 5.0], 2, 0), ([1.5, 5.0], 1, 1), ([np.nan, 5.0], 1, 1), ([np.inf, 5.0], 1, 1)],
)
def test_a_tainted_element_may_agree_with_either_outcome(came, compared, unstable):
    reference = _either([1.0, 5.0], [2.0, 5.0], [True, False])
    for told in (
        compare_meaning(reference, np.array(came)),
        compare_arithmetic(reference, np.array(came, np.float32)),
    ):
        assert not told.different
        assert (told.compared, told.unstable) == (compared, unstable)


def test_an_alternate_excuses_no_element_that_is_not_tainted():
    reference = _either([1.0, 5.0], [2.0, 6.0], [True, False])
    assert compare_meaning(reference, np.array([2.0, 6.0])).different
    exact = _either(np.array([1, 5]), np.array([2, 6]), [True, False], "int64")
    assert compare_meaning(exact, np.array([2, 6])).different
    assert not compare_meaning(exact, np.array([2, 5])).different
    assert compare_meaning(exact, np.array([3, 5])).unstable == 1


def test_an_outcome_that_agrees_has_no_score():
    told = compare_meaning(_either([1.0, 5.0], [2.0, 5.0], [True, False]), np.array([2.0, 5.0]))
    assert told.score == 0.0
    assert told.wrong == 0


# ---------------------------------------------------------------------- types that are no numbers


@pytest.mark.parametrize(
    "compare", [compare_meaning, compare_arithmetic, lambda r, c: compare_fixed(r, c, rtol=0.1, atol=1)]
)
def test_strings_are_equal_or_not(compare):
    reference = _reference(np.asarray(["a", "ü", ""], dtype=object), "object", meaning=0, arithmetic=0)
    assert not compare(reference, np.asarray(["a", "ü", ""], dtype=object)).different
    wrong = compare(reference, np.asarray(["a", "u", ""], dtype=object))
    assert (wrong.kind, wrong.index, wrong.reference, wrong.candidate) == (Kind.VALUE, (1,), "ü", "u")
