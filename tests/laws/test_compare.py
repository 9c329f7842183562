"""Compare is reflexive, sees every change beyond the threshold, and never gets milder when a change grows."""

from __future__ import annotations

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.laws.strategies import EXACT, FILLED, FLOATS, LAW, SHAPES, arrays, finite_arrays, reference_of
from trueport.oracle.compare import compare_arithmetic, compare_fixed, compare_meaning
from trueport.oracle.thresholds import THRESHOLDS
from trueport.oracle.units import FLOAT_TYPES


@LAW
@given(arrays(FLOATS + EXACT))
def test_reflexive(value):
    reference = reference_of(value)
    for told in (
        compare_meaning(reference, reference.value),
        compare_arithmetic(reference, value),
        compare_fixed(reference, value, rtol=0.0, atol=0.0),
    ):
        assert not told.different
        assert told.score == 0.0
        assert told.wrong == 0
        assert told.compared + told.unstable in (0, value.size)


@LAW
@given(arrays(FLOATS + EXACT), arrays(FLOATS + EXACT))
def test_another_type_or_shape_is_always_a_difference(value, other):
    assume(value.dtype != other.dtype or value.shape != other.shape)
    assert compare_arithmetic(reference_of(value), other).different
    assert compare_fixed(reference_of(value), other, rtol=1e3, atol=1e3).different


def _place(data, value):
    return np.unravel_index(data.draw(st.integers(0, value.size - 1)), value.shape)


@LAW
@given(finite_arrays(FILLED), st.floats(1.01, 1e6), st.sampled_from([-1, 1]), st.data())
def test_a_change_beyond_the_threshold_is_seen_in_meaning(value, times, sign, data):
    reference, index = reference_of(value, dtype="float32"), _place(data, value)
    allowed = THRESHOLDS.meaning * max(reference.meaning_floor[index], abs(value[index]) * 2.0**-50)
    changed = value.copy()
    changed[index] += sign * (times * allowed + 1e-300)
    assume(changed[index] != value[index])
    told = compare_meaning(reference, changed)
    assert told.different
    assert told.index == tuple(int(i) for i in index)
    assert told.wrong == 1


@LAW
@given(finite_arrays(FILLED), st.floats(0.0, 0.9), st.sampled_from([-1, 1]))
def test_a_change_inside_the_threshold_is_not(value, share, sign):
    reference = reference_of(value, dtype="float32")
    allowed = THRESHOLDS.meaning * reference.meaning_floor
    assert not compare_meaning(reference, np.asarray(value + sign * share * allowed)).different


@LAW
@given(finite_arrays(FILLED), st.floats(1.01, 1e6), st.sampled_from([-1, 1]), st.data())
def test_a_change_beyond_the_threshold_is_seen_in_arithmetic(value, times, sign, data):
    index = _place(data, value)
    narrow = value.astype(np.float32)
    reference = reference_of(narrow)
    kind = FLOAT_TYPES["float32"]
    want = float(narrow[index])
    allowed = THRESHOLDS.arithmetic * reference.arithmetic_floor[index] + abs(want) * kind.unit_roundoff + kind.flushed
    came = narrow.copy()
    came[index] = np.float32(want + sign * (times * allowed + 2 * abs(want) * kind.unit_roundoff + kind.flushed))
    assert compare_arithmetic(reference, came).different


@LAW
@given(arrays(EXACT, FILLED), st.data())
def test_every_change_of_an_exact_type_is_seen(value, data):
    index = _place(data, value)
    changed = value.copy()
    changed[index] = ~changed[index] if value.dtype.kind == "b" else changed[index] ^ data.draw(st.integers(1, 127))
    told = compare_meaning(reference_of(value), changed)
    assert told.different
    assert told.index == tuple(int(i) for i in index)


@LAW
@given(arrays(FLOATS, FILLED), st.sampled_from([np.nan, np.inf, -np.inf]), st.data())
def test_every_change_of_what_is_not_finite_is_seen(value, special, data):
    index = _place(data, value)
    changed = value.copy()
    changed[index] = special
    same = value[index] == special or (np.isnan(value[index]) and np.isnan(special))
    assert compare_arithmetic(reference_of(value), changed).different is not bool(same)


@LAW
@given(finite_arrays(FILLED), st.data())
def test_an_element_never_excuses_another(value, data):
    """Only the changed element's own floor counts, however large its neighbours and their floors are."""
    index = _place(data, value)
    huge = value.copy()
    huge[...] = 1e30
    huge[index] = value[index]
    changed = huge.copy()
    changed[index] = value[index] * 1.01 + 0.01
    told = compare_meaning(reference_of(huge, dtype="float32"), changed)
    assert told.different
    assert told.index == tuple(int(i) for i in index)


@LAW
@given(finite_arrays(FILLED), st.integers(0, 2**32 - 1), st.floats(1.0, 1e6))
def test_a_larger_error_never_scores_less(value, seed, times):
    error = np.random.default_rng(seed).standard_normal(value.shape)
    reference = reference_of(value, dtype="float32")
    small, large = (compare_meaning(reference, np.asarray(value + e)).score for e in (error, error * times))
    assert large >= small * (1 - 1e-6)


@LAW
@given(arrays(FLOATS + EXACT, FILLED), st.data())
def test_a_tainted_element_counts_only_where_it_agrees(value, data):
    index = _place(data, value)
    reference = reference_of(value)
    reference.unstable[index] = True
    changed = reference.value.copy()
    changed[index] = ~changed[index] if value.dtype.kind == "b" else 1
    told = compare_meaning(reference, changed)
    assert not told.different
    agrees = not compare_meaning(reference_of(value), changed).different
    assert (told.compared, told.unstable) == (value.size - (not agrees), int(not agrees))


@LAW
@given(arrays(FLOATS + EXACT, SHAPES))
def test_nothing_is_written(value):
    reference = reference_of(value)
    kept = [
        a.copy() for a in (reference.value, reference.meaning_floor, reference.arithmetic_floor, reference.unstable)
    ]
    candidate = value.copy()
    compare_meaning(reference, reference.value, extra_floor=np.ones(value.shape))
    compare_arithmetic(reference, candidate, extra_floor=np.ones(value.shape))
    after = (reference.value, reference.meaning_floor, reference.arithmetic_floor, reference.unstable)
    assert all(a.tobytes() == b.tobytes() for a, b in zip(kept, after, strict=True))
    assert candidate.tobytes() == value.tobytes()
