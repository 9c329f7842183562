"""Which numbers of a candidate were computed by its converter."""

from __future__ import annotations

import numpy as np

from trueport.adapters.float64.constants import LARGE, KnownNumbers


def _weights(count: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(count).astype(np.float32)


def test_a_large_tensor_that_was_scaled_is_computed_altogether_however_many_numbers_are_met_by_chance() -> None:
    weights = _weights(1_000_000, 0)
    scaled = weights[: 2 * LARGE] * np.float32(0.7)
    by_chance = np.isin(scaled, weights)
    assert by_chance.any()
    assert KnownNumbers([weights]).computed(scaled).all()


def test_a_large_slice_of_a_weight_is_known() -> None:
    weights = _weights(4 * LARGE, 1)
    assert not KnownNumbers([weights]).computed(weights[7 : 2 * LARGE + 9]).any()


def test_the_computed_third_of_a_large_tensor_is_found_by_number() -> None:
    weights = _weights(4 * LARGE, 2)
    joined = np.concatenate([weights[: 2 * LARGE], weights[:LARGE] * np.float32(1.1)])
    computed = KnownNumbers([weights]).computed(joined)
    assert not computed[: 2 * LARGE].any()
    assert computed[2 * LARGE :].mean() > 0.9


def test_zeros_of_a_computed_tensor_carry_no_noise() -> None:
    weights = _weights(2 * LARGE, 3)
    scaled = weights * np.float32(0.7)
    scaled[::4] = 0
    assert (KnownNumbers([weights]).computed(scaled) == (scaled != 0)).all()
