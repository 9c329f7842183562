"""The source's own numbers are recognized wherever a converter puts them, and nothing else is."""

from __future__ import annotations

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from tests.laws.strategies import FILLED, LAW
from trueport.adapters.float64.constants import SIMPLE_BITS, KnownNumbers

WEIGHTS = npst.arrays(np.float32, FILLED, elements=st.floats(-100, 100, width=32))
LISTS = st.lists(WEIGHTS, min_size=1, max_size=3)
SEEDS = st.integers(0, 2**32 - 1)


@LAW
@given(LISTS)
def test_the_source_s_own_numbers(weights):
    known = KnownNumbers(weights)
    assert not any(known.computed(w).any() for w in weights)


@LAW
@given(LISTS, SEEDS)
def test_moved_negated_split_and_joined_numbers(weights, seed):
    known, rng = KnownNumbers(weights), np.random.default_rng(seed)
    for weight in weights:
        for moved in (
            weight.T, -weight, weight.reshape(-1), rng.permutation(weight.ravel()), weight.ravel()[::-1],
            weight.ravel()[: weight.size // 2], np.stack([weight, -weight]), weight.astype(np.float64),
            np.broadcast_to(weight, (2, *weight.shape)),
        ):  # fmt: skip
            assert not known.computed(moved).any()
    assert not known.computed(np.concatenate([w.ravel() for w in weights])).any()


@LAW
@given(LISTS, st.floats(-1e6, 1e6), SEEDS)
def test_the_answer_follows_the_numbers(weights, other, seed):
    known = KnownNumbers(weights)
    values = np.append(weights[0].ravel().astype(np.float64), other)
    order = np.random.default_rng(seed).permutation(values.size)
    assert np.array_equal(known.computed(values[order]), known.computed(values)[order])
    assert known.computed(values).shape == values.shape


@LAW
@given(st.floats(0.125, 10, width=32), st.sampled_from([-1, 1]))
def test_a_neighbour_of_a_number_is_computed(number, direction):
    number = np.float32(number)
    near = np.nextafter(number, np.float32(direction * 1e9))
    assume(np.frexp(np.float64(near))[0] * 2.0**SIMPLE_BITS % 1 != 0)
    assert KnownNumbers([np.array([number])]).computed(np.array([near])).all()


@LAW
@given(st.floats(0.1, 10), st.lists(st.floats(0.1, 10), max_size=3))
def test_literals_are_known(number, more):
    known = KnownNumbers([], [number, *more])
    assert not known.computed(np.array([number, -number])).any()


@LAW
@given(st.integers(-(2**SIMPLE_BITS), 2**SIMPLE_BITS), st.integers(-30, 30))
def test_simple_numbers_are_written_and_not_computed(mantissa, exponent):
    assert not KnownNumbers([]).computed(np.array([mantissa * 2.0**exponent])).any()


@LAW
@given(WEIGHTS)
def test_products_are_computed(weight):
    """A folded scale is found out, unless a product happens to be simple or known."""
    product = (weight.astype(np.float64) * 1.2345678).astype(np.float32)
    told = KnownNumbers([weight]).computed(product)
    mantissa = np.frexp(product.astype(np.float64))[0] * 2.0**SIMPLE_BITS
    simple = mantissa == np.rint(mantissa)
    own = np.isin(np.abs(product), np.abs(weight))
    assert np.array_equal(told, ~(simple | own))


def test_what_is_not_finite_is_not_computed():
    assert not KnownNumbers([]).computed(np.array([np.nan, np.inf, -np.inf, 0.0, -0.0])).any()


def test_foreign_types():
    known = KnownNumbers([], types=("float32", "bfloat16"))
    assert known.is_foreign("float16")
    assert not any(known.is_foreign(t) for t in ("float32", "bfloat16", "float64", "int64", "bool"))
