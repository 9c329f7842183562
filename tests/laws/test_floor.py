"""A floor is non-negative, of the output's shape, follows its elements, and scales with the noise."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from tests.laws.strategies import LAW, SHAPES, finite_arrays
from trueport.oracle.floor import elementwise_floor
from trueport.oracle.noise import local_noise, summation_noise

SEEDS = st.integers(0, 2**32 - 1)
COUNTS = st.integers(0, 6)


def _runs(main, count, seed, size=1e-3):
    rng = np.random.default_rng(seed)
    return [main + size * rng.standard_normal(main.shape) * (rng.random(main.shape) < 0.7) for _ in range(count)]


@LAW
@given(npst.arrays(np.float64, SHAPES), COUNTS, SEEDS)
def test_non_negative_finite_and_of_the_same_shape_whatever_comes(main, count, seed):
    rng = np.random.default_rng(seed)
    with np.errstate(all="ignore"):
        runs = [main * rng.choice([1.0, 1 + 1e-7, np.nan, np.inf], main.shape) for _ in range(count)]
    floor = elementwise_floor(main, runs)
    assert floor.shape == main.shape
    assert (floor >= 0).all()
    assert np.isfinite(floor).all()


@LAW
@given(finite_arrays(), COUNTS, SEEDS)
def test_zero_exactly_where_no_run_differs(main, count, seed):
    runs = _runs(main, count, seed)
    differs = np.zeros(main.shape, bool)
    for run in runs:
        differs |= run != main
    assert np.array_equal(elementwise_floor(main, runs) > 0, differs)


@LAW
@given(finite_arrays(npst.array_shapes(min_dims=1, max_dims=1, max_side=24)), COUNTS, SEEDS)
def test_a_vector_may_be_permuted(main, count, seed):
    """A vector has no channels, so all its elements of an octave are one group."""
    runs = _runs(main, count, seed)
    order = np.random.default_rng(seed).permutation(main.size)
    np.testing.assert_allclose(
        elementwise_floor(main[order], [run[order] for run in runs]), elementwise_floor(main, runs)[order], rtol=1e-12
    )


@LAW
@given(finite_arrays(npst.array_shapes(min_dims=3, max_dims=3, max_side=4)), COUNTS, SEEDS)
def test_batches_channels_and_places_may_be_permuted(main, count, seed):
    runs = _runs(main, count, seed)
    rng = np.random.default_rng(seed)
    orders = np.ix_(*[rng.permutation(n) for n in main.shape])
    np.testing.assert_allclose(
        elementwise_floor(main[orders], [run[orders] for run in runs]),
        elementwise_floor(main, runs)[orders],
        rtol=1e-12,
    )


@LAW
@given(finite_arrays(), st.integers(1, 6), SEEDS, st.integers(-20, 20))
def test_scaling_everything_by_a_power_of_two_scales_the_floor(main, count, seed, power):
    runs = _runs(main, count, seed)
    scale = 2.0**power
    np.testing.assert_allclose(
        elementwise_floor(main * scale, [r * scale for r in runs]), elementwise_floor(main, runs) * scale, rtol=1e-12
    )


@LAW
@given(finite_arrays(), st.integers(1, 6), SEEDS)
def test_negating_everything_changes_nothing(main, count, seed):
    runs = _runs(main, count, seed)
    assert np.array_equal(elementwise_floor(-main, [-r for r in runs]), elementwise_floor(main, runs))


@LAW
@given(finite_arrays(), st.sampled_from(["float32", "float16", "bfloat16"]), st.booleans())
def test_local_noise_is_non_negative_and_covers_what_was_measured(exact, dtype, inexact):
    rounded = exact.astype(np.float32).astype(np.float64)
    noise = local_noise(exact, rounded, dtype, None, inexact=inexact)
    assert (noise >= np.abs(rounded - exact)).all()


@LAW
@given(finite_arrays(bound=1e3), st.integers(1, 10_000), st.integers(1, 10_000))
def test_more_terms_never_make_less_noise(total, fewer, more):
    first, second = sorted((fewer, more))
    squares = np.square(total)
    assert (summation_noise(total, squares, first, 1e-7) <= summation_noise(total, squares, second, 1e-7) + 1e-30).all()
