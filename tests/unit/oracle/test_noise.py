"""The model of rounding noise, against rounding."""

from __future__ import annotations

import numpy as np
import pytest

from trueport.oracle.noise import (
    ALARM,
    MEANING_SAFETY,
    SCREEN,
    Draws,
    draw,
    local_noise,
    meaning_scale,
    summation_noise,
)

U32 = 2.0**-24


def _rng():
    return np.random.default_rng(11)


TERMS = {
    "normal": lambda rng, n: rng.normal(size=n),
    "positive": lambda rng, n: rng.random(n),
    "large mean": lambda rng, n: 20 + rng.normal(size=n),
    "heavy tail": lambda rng, n: rng.standard_t(3, size=n),
    "one large": lambda rng, n: np.append(rng.normal(size=n - 1), 300.0),
}


def _sequential(terms: np.ndarray) -> float:
    return float(np.cumsum(terms, dtype=np.float32)[-1])


@pytest.mark.parametrize("size", [16, 256, 2048])
@pytest.mark.parametrize("kind", TERMS)
def test_summation_noise_is_the_spread_over_orders_of_summation(kind, size):
    rng = _rng()
    terms = TERMS[kind](rng, size).astype(np.float32)
    exact = terms.astype(np.float64).sum()
    errors = [_sequential(rng.permutation(terms)) - exact for _ in range(200)]
    predicted = summation_noise(np.asarray(exact), np.square(terms.astype(np.float64)).sum(), size, U32)
    measured = float(np.sqrt(np.mean(np.square(errors))))
    assert measured / 3 < float(predicted) < 3 * measured


@pytest.mark.parametrize("size", [64, 1000, 30_000])
@pytest.mark.parametrize("value", [0.1, 1 / 3, -2.7])
def test_equal_terms_add_up_their_errors(value, size):
    terms = np.full(size, value, np.float32)
    exact = terms.astype(np.float64).sum()
    noise = float(summation_noise(np.asarray(exact), np.square(terms.astype(np.float64)).sum(), size, U32))
    error = abs(_sequential(terms) - exact)
    assert error < noise
    assert noise == pytest.approx(U32 * size * abs(exact) / 2)


def test_nearly_equal_terms_count_as_equal():
    """How much of the common error survives depends on the values; the bound of equal terms holds for all of them."""
    terms = (1000 + _rng().normal(size=500)).astype(np.float32)
    exact = terms.astype(np.float64).sum()
    noise = float(summation_noise(np.asarray(exact), np.square(terms.astype(np.float64)).sum(), 500, U32))
    assert noise == pytest.approx(U32 * 500 * exact / 2)
    assert abs(_sequential(terms) - exact) < noise


def test_a_sum_of_one_term_is_exact():
    assert summation_noise(np.array([3.0]), np.array([9.0]), 1, U32).tolist() == [0.0]
    assert summation_noise(np.array([3.0, 3.0]), np.array([9.0, 9.0]), np.array([1, 2]), U32)[0] == 0.0


def test_terms_may_differ_per_element():
    noise = summation_noise(np.array([5.0, 5.0]), np.array([9.0, 9.0]), np.array([10, 1000]), U32)
    assert noise[1] == pytest.approx(10 * noise[0])


def test_summation_noise_of_infinity_does_not_warn():
    noise = summation_noise(np.array([np.inf, 1e200]), np.array([np.inf, np.inf]), 4, U32)
    assert noise.shape == (2,)


# ---------------------------------------------------------------------- one operator


def test_an_exact_operator_has_no_noise():
    exact = np.array([1.0, 2.5, 0.0])
    assert not local_noise(exact, exact.copy(), "float32", None, inexact=False).any()


def test_one_inexact_element_makes_all_of_them_doubtful():
    exact = np.array([1.0, 0.1])
    noise = local_noise(exact, exact.astype(np.float32).astype(np.float64), "float32", None, inexact=False)
    assert (noise > 0).all()
    assert noise[0] >= U32


def test_the_measured_error_counts_where_it_is_larger():
    exact = np.array([1.0])
    assert local_noise(exact, np.array([1.01]), "float32", None, inexact=True)[0] == pytest.approx(0.01)


def test_extra_noise_counts_where_it_is_larger():
    noise = local_noise(np.array([1.0, 1.0]), None, "float32", np.array([1e-3, 1e-30]), inexact=True)
    assert noise[0] == 1e-3
    assert noise[1] == pytest.approx(U32)


def test_what_is_not_finite_has_no_noise():
    exact = np.array([np.inf, np.nan, 1.0])
    noise = local_noise(exact, np.array([np.nan, 1.0, 1.0]), "float32", np.array([np.nan] * 3), inexact=True)
    assert noise[:2].tolist() == [0.0, 0.0]
    assert np.isfinite(noise).all()


def test_noise_of_narrow_types_is_larger():
    sizes = [local_noise(np.ones(1), None, t, None, inexact=True)[0] for t in ("float32", "float16", "bfloat16")]
    assert sizes == sorted(sizes)
    assert sizes[1] / sizes[0] == pytest.approx(2.0**13, rel=1e-3)


# ---------------------------------------------------------------------- drawing


def test_coherent_noise_has_one_sign_and_full_size():
    noise = np.array([1.0, 2.0, 0.0])
    rng = _rng()
    drawn = {tuple(draw(rng, noise, coherent=True).tolist()) for _ in range(20)}
    assert drawn == {(1.0, 2.0, 0.0), (-1.0, -2.0, 0.0)}


def test_independent_noise_has_the_size_asked_for():
    drawn = draw(_rng(), np.full(20_000, 3.0), coherent=False)
    assert drawn.std() == pytest.approx(3.0, rel=0.05)
    assert abs(drawn.mean()) < 0.1


def test_no_noise_stays_no_noise():
    for coherent in (True, False):
        assert not draw(_rng(), np.zeros(5), coherent=coherent).any()


def test_draws_come_from_the_generator_alone():
    first, second = (draw(_rng(), np.ones(4), coherent=False) for _ in range(2))
    assert first.tolist() == second.tolist()


def test_meaning_noise_is_a_few_units_of_float64():
    for name, unit in (("float32", U32), ("float16", 2.0**-11), ("bfloat16", 2.0**-8)):
        assert meaning_scale(name) * unit == MEANING_SAFETY * 2.0**-53


def test_an_alarm_needs_more_draws_than_a_screen():
    assert SCREEN.total == SCREEN.arithmetic + SCREEN.meaning
    assert ALARM.arithmetic >= 12
    assert ALARM.meaning > SCREEN.meaning
    assert Draws(0, 0).total == 0
