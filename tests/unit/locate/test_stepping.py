"""Faults behind faults are found where names are lost: a repaired place shows what lies behind it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tests.unit.locate.toy import Toy, chain, node
from trueport.core.trace import TracedNode, TracedRun
from trueport.locate.counterparts import with_counterparts
from trueport.locate.forced import find_faults
from trueport.locate.frontier import find_frontier
from trueport.locate.stepping import stepped_pairs


class _ByValue:
    """Pairs values that are equal."""

    def __init__(self, good: TracedRun) -> None:
        self._good = good
        self._found: dict[str, str] = {}

    def see(self, node: TracedNode, outputs: list[Any]) -> list[Any]:
        """Takes note of a node."""
        for name, value in zip(node.outputs, outputs, strict=True):
            for other, want in self._good.values.items():
                if want.shape == value.shape and np.allclose(value, want, rtol=1e-12, atol=0):
                    self._found.setdefault(name, other)
        return outputs

    def pairs(self) -> dict[str, str]:
        """Returns the pairs."""
        return dict(self._found)


def _blamed(good: Toy, bad: Toy) -> list[str]:
    """The source's values at which a candidate without the source's names is wrong."""
    candidate, want = bad.renamed(), good.run().values[good.outputs[0]]

    def score(outputs: Sequence[Any]) -> float:
        return float(np.max(np.abs(outputs[0] - want) / (np.abs(want) * 2.0**-50)))

    pairs = stepped_pairs(
        candidate.follow, good.run(), candidate.run(), lambda: _ByValue(good.run()), [0], lambda o: score(o) <= 32
    )
    faults = find_faults(candidate.follow, good.run(), pairs, score)
    assert faults.cured
    return sorted(e.pair for e in faults.faults)


def test_one_fault_is_found() -> None:
    assert _blamed(chain(), chain().with_("h", lambda v: v * 0.51)) == ["h"]


def test_a_second_fault_behind_the_first_is_found_as_well() -> None:
    bad = chain().with_("e", lambda v: np.exp(v) * 1.1).with_("t", lambda v: np.tanh(v) + 1e-3)
    assert _blamed(chain(), bad) == ["e", "t"]


def test_faults_on_two_ways_are_both_found() -> None:
    bad = chain().with_("q", lambda v: v**2.5).with_("s", np.cos)
    assert _blamed(chain(), bad) == ["q", "s"]


def _with_mask(*, apart: bool) -> Toy:
    """exp -> scores that are masked -> tanh; the mask is turned into numbers apart, or inside of the one operator."""
    x = np.random.default_rng(1).standard_normal((4, 6))
    mask = node("m", "where", ["b"], lambda b: np.where(b, 0.0, -1.0)[:1])
    whole = node("a", "attention", ["x", "b"], lambda v, b: np.exp(v) + np.where(b, 0.0, -1.0)[:1])
    split = node("a", "attention", ["x", "m"], lambda v, m: np.exp(v) + m)
    return Toy(
        (*((mask, split) if apart else (whole,)), node("y", "tanh", ["a"], np.tanh)), {"x": x, "b": x > 0}, ("y",)
    )


def test_an_operator_without_a_counterpart_is_not_the_first_to_be_named() -> None:
    good = _with_mask(apart=True)
    bad = _with_mask(apart=False).with_("a", lambda v, b: np.exp(1.01 * v) + np.where(b, 0.0, -1.0)[:1])
    found = find_frontier(good.run(), bad.run(), [0])
    assert [n.name for n in found.source] == ["m"]
    assert [n.name for n in with_counterparts(found, good.run(), bad.run()).source] == ["a", "m"]


def test_nodes_whose_values_were_not_kept_are_not_named() -> None:
    good = chain()
    sizes = replace(good, nodes=(node("n", "sym_size", ["x"], lambda v: v.shape[0]), *good.nodes))
    run = sizes.run()
    kept = replace(run, values={k: v for k, v in run.values.items() if k != "n"})
    bad = chain().with_("q", lambda v: v**2.5).renamed().run()
    frontier = find_frontier(kept, bad, [0])
    assert [n.name for n in with_counterparts(frontier, kept, bad).source] == ["q"]
