"""From noisy runs to a tolerance: what is exact stays exact, and neighbours are neighbours."""

from __future__ import annotations

import numpy as np
import pytest

from trueport.oracle.floor import PRIOR_DRAWS, Spread, elementwise_floor


def _runs(main: np.ndarray, size: np.ndarray | float, count: int = 16, seed: int = 5) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [main + size * rng.standard_normal(main.shape) for _ in range(count)]


def test_no_runs_no_floor():
    assert not elementwise_floor(np.ones((2, 3)), []).any()


def test_runs_that_agree_leave_zero():
    main = np.arange(6.0)
    assert not elementwise_floor(main, [main.copy() for _ in range(4)]).any()


def test_an_exact_element_stays_exact_beside_noisy_neighbours():
    main = np.full(100, 1.5)
    size = np.full(100, 1e-3)
    size[7] = 0.0
    floor = elementwise_floor(main, _runs(main, size))
    assert floor[7] == 0.0
    assert (np.delete(floor, 7) > 0).all()


@pytest.mark.parametrize("count", [1, 2, 4, 16])
def test_floor_is_about_the_noise(count):
    main = np.linspace(1.0, 1.9, 400)
    floor = elementwise_floor(main, _runs(main, 1e-4, count))
    assert np.median(floor) == pytest.approx(1e-4, rel=0.4)


def test_few_draws_lean_on_neighbours():
    """One run that happens to be near the truth does not make an element exact."""
    main = np.full(64, 1.5)
    run = main + 1e-3
    run[0] = main[0] + 1e-12
    floor = elementwise_floor(main, [run])
    assert floor[0] == pytest.approx(1e-3 * np.sqrt(PRIOR_DRAWS / (PRIOR_DRAWS + 1)), rel=0.02)


def test_rows_of_different_scale_are_no_neighbours():
    main = np.outer(10.0 ** np.arange(0, 12, 3), np.linspace(1.0, 1.5, 50))
    size = main * 1e-7
    floor = elementwise_floor(main, _runs(main, size))
    ratio = floor / size
    assert 0.3 < ratio.min() < ratio.max() < 3


def test_one_quiet_column_is_not_drowned_by_a_huge_one():
    main = np.ones((64, 2)) * [1.0, 1e30]
    floor = elementwise_floor(main, _runs(main, np.broadcast_to([1e-8, 1e23], main.shape)))
    assert floor[:, 0].max() < 1e-7
    assert floor[:, 1].min() > 1e22


def test_a_quiet_channel_of_the_same_magnitude_is_not_drowned_by_a_loud_one():
    main = np.full((2, 3, 40), 1.5)
    size = np.zeros(main.shape) + np.array([1e-9, 1e-3, 1e-9])[None, :, None]
    floor = elementwise_floor(main, _runs(main, size))
    assert floor[:, 0].max() < 1e-8
    assert floor[:, 2].max() < 1e-8
    assert floor[:, 1].min() > 1e-4


def test_a_quiet_column_of_a_matrix_is_not_drowned():
    main = np.full((40, 2), 1.5)
    size = np.zeros(main.shape) + np.array([1e-9, 1e-3])
    assert elementwise_floor(main, _runs(main, size))[:, 0].max() < 1e-8


def test_zeros_are_a_group_of_their_own():
    main = np.concatenate([np.zeros(30), np.full(30, 1.5)])
    size = np.concatenate([np.full(30, 1e-12), np.full(30, 1e-3)])
    floor = elementwise_floor(main, _runs(main, size))
    assert floor[:30].max() < 1e-11


def test_coherent_noise_counts_where_it_is_the_larger():
    """Odd runs are coherent: averaging within a sum does not reduce them."""
    main = np.full(50, 1.5)
    quiet, loud = main + 1e-9, main + 1e-3
    floor = elementwise_floor(main, [quiet, loud, quiet, loud])
    assert floor == pytest.approx(1e-3)
    assert elementwise_floor(main, [loud, quiet, loud, quiet]) == pytest.approx(1e-3)


def test_what_is_not_finite_does_not_spread():
    main = np.array([1.0, np.inf, np.nan, 1.25])
    runs = [np.array([1.001, np.inf, np.nan, np.inf]), np.array([0.999, np.nan, 1.0, 1.26])]
    floor = elementwise_floor(main, runs)
    assert np.isfinite(floor).all()
    assert (floor >= 0).all()


def test_complex_values_have_a_real_floor():
    main = np.full(20, 1 + 1j)
    floor = elementwise_floor(main, [main + 1e-3j, main - 1e-3])
    assert floor.dtype == np.float64
    assert floor == pytest.approx(1e-3)


@pytest.mark.parametrize("shape", [(), (1,), (0,), (3, 0), (1, 1, 1), (2, 3, 4, 5)])
def test_every_shape_keeps_its_shape(shape):
    main = np.ones(shape)
    assert elementwise_floor(main, _runs(main, 1e-3, 3)).shape == shape


def test_runs_added_one_by_one_give_the_floor_of_all() -> None:
    rng = np.random.default_rng(1)
    main = rng.standard_normal((4, 5))
    main[1, 2] = np.inf
    runs = _runs(main, 1e-12, count=3)
    spread = Spread(main)
    for run in runs:
        spread.add(run)
    assert np.array_equal(spread.floor(), elementwise_floor(main, runs))
    assert (spread.floor()[np.isfinite(main)] > 0).all()
    assert spread.floor()[1, 2] == 0


def test_without_runs_there_is_no_noise() -> None:
    assert not Spread(np.ones(3)).floor().any()
