"""Where two runs part when names are lost."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tests.unit.locate.toy import Toy, chain, node
from trueport.locate.frontier import find_frontier


def _first(good: Toy, bad: Toy) -> list[str]:
    return [n.name for n in find_frontier(good.run(), bad.renamed().run(), [0]).source]


def test_the_first_node_whose_value_is_not_found_is_where_they_part() -> None:
    assert _first(chain(), chain().with_("q", lambda v: v**2.5)) == ["q"]


def test_two_branches_part_at_two_nodes() -> None:
    assert _first(chain(), chain().with_("q", lambda v: v**2.5).with_("s", np.cos)) == ["q", "s"]


def test_a_right_candidate_parts_at_its_output_alone_or_nowhere() -> None:
    assert _first(chain(), chain()) == ["y"] or not _first(chain(), chain())


def test_what_no_wrong_output_depends_on_is_not_blamed() -> None:
    good = chain()
    extra = replace(good, nodes=(*good.nodes, node("z", "Cos", ["x"], np.cos)))
    assert _first(extra, good.with_("t", np.sin)) == ["t"]


def test_elements_in_another_order_are_the_same_value() -> None:
    good = chain()
    parts = list(good.nodes)
    parts[1:3] = [
        node("h", "Mul", ["e"], lambda v: (v * 0.5).T),
        node("q", "Pow", ["h"], lambda v: np.square(v).T),
    ]
    assert _first(good, replace(good, nodes=tuple(parts)).with_("t", np.sin)) == ["t"]


def test_a_coarser_candidate_parts_at_the_first_operator_that_it_swallowed() -> None:
    good = chain()
    parts = list(good.nodes)
    parts[1:4] = [node("t", "Fused", ["e"], lambda v: np.tanh(np.square(v * 0.6)))]
    assert _first(good, replace(good, nodes=tuple(parts))) == ["h"]
