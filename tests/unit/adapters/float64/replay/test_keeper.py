"""What a trace keeps stays within its limit, constants within their part of it, and floors are those of all runs."""

from __future__ import annotations

import numpy as np

from trueport.adapters.float64.replay.keeper import Keeper
from trueport.core.trace import TracedNode
from trueport.oracle.floor import elementwise_floor


def _node(name: str) -> TracedNode:
    return TracedNode(name, "Exp", ("x",), (name,))


def _kept(keeper: Keeper) -> set[str]:
    return set(keeper.run((), frozenset()).values)


def test_values_beyond_the_limit_are_counted_and_left_out() -> None:
    keeper = Keeper(1000)
    for name in ("a", "b", "c"):
        keeper.main(_node(name), [np.zeros(60)])
    run = keeper.run((), frozenset())
    assert set(run.values) == {"a", "b"}
    assert run.left_out == 1


def test_what_is_behind_floors_counts_too() -> None:
    keeper = Keeper(1000, draws=4)
    for name in ("a", "b"):
        keeper.main(_node(name), [np.zeros(40)])
    assert _kept(keeper) == {"a"}


def test_constants_do_not_crowd_out_what_is_computed() -> None:
    keeper = Keeper(1000, constants=frozenset({"w", "v"}))
    for name in ("w", "v", "a"):
        keeper.main(_node(name), [np.zeros(30)])
    assert _kept(keeper) == {"w", "a"}


def test_a_small_part_does_not_hold_on_to_the_whole() -> None:
    keeper = Keeper(1000)
    keeper.main(_node("a"), [np.zeros(10_000)[:5]])
    value = keeper.run((), frozenset()).values["a"]
    assert value.base is None


def test_floors_are_those_of_all_runs_at_once() -> None:
    rng = np.random.default_rng(0)
    main = rng.standard_normal((3, 4))
    runs = [main + 1e-9 * rng.standard_normal(main.shape) for _ in range(5)]
    keeper = Keeper(10_000, draws=5)
    keeper.main(_node("a"), [main])
    for run in runs:
        keeper.noisy(_node("a"), [run])
    assert np.array_equal(keeper.run((), frozenset()).floors["a"], elementwise_floor(main, runs))


def test_a_noisy_run_of_another_shape_is_left_out() -> None:
    keeper = Keeper(10_000, draws=1)
    keeper.main(_node("a"), [np.ones(3)])
    keeper.noisy(_node("a"), [np.ones(2)])
    assert not keeper.run((), frozenset()).floors
