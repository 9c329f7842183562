"""Values of a candidate are paired with the source's by name, and by what they are where names are lost."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tests.unit.locate.toy import Toy, chain, node
from trueport.core.trace import TracedRun
from trueport.locate.pairs import Pairing


def _pairs(good: TracedRun, bad: Toy) -> dict[str, str]:
    pairing = Pairing(good)
    bad.follow(pairing.see, None)
    return pairing.pairs()


def test_equal_names_are_a_pair_whatever_the_values() -> None:
    assert _pairs(chain().run(), chain().with_("h", np.cos))["h"] == "h"


def test_values_are_paired_by_what_they_are_where_names_are_lost() -> None:
    assert list(_pairs(chain().run(), chain().renamed()).values()) == ["e", "h", "q", "t", "s", "y"]


def test_a_value_that_differs_by_more_than_its_floor_is_no_pair() -> None:
    bad = chain().with_("h", lambda v: v * (0.5 + 1e-9)).renamed()
    assert list(_pairs(chain().run(), bad).values()) == ["e", "s"]


def test_the_floor_of_the_source_widens_what_is_equal() -> None:
    run = chain().run()
    floors = {name: np.full(value.shape, 1e-9) for name, value in run.values.items()}
    bad = chain().with_("h", lambda v: v * (0.5 + 1e-10)).renamed()
    assert "h" in _pairs(replace(run, floors=floors), bad).values()


def test_two_values_with_equal_sums_are_told_apart() -> None:
    source = Toy((node("a", "Neg", ["x"], lambda v: -v),), {"x": np.array([1.0, 2.0, 3.0])}, ("a",))
    other = Toy((node("b", "Roll", ["x"], lambda v: -np.roll(v, 1)),), source.feeds, ("b",))
    assert not _pairs(source.run(), other)


def test_what_a_name_connects_is_not_given_to_a_copy() -> None:
    good = chain()
    copy = node("copy", "Identity", ["h"], lambda v: v * 1.0)
    assert "copy" not in _pairs(good.run(), replace(good, nodes=(*good.nodes[:2], copy, *good.nodes[2:])))


def test_infinite_values_are_not_paired_by_value() -> None:
    good = chain().with_("e", lambda v: v / 0.0 * np.ones_like(v))
    with np.errstate(all="ignore"):
        assert "e" not in _pairs(good.run(), good.renamed()).values()
