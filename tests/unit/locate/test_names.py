"""Equal names mean equal things, unless a converter numbered its values anew."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from tests.unit.locate.toy import Toy, node
from trueport.core.trace import TracedNode
from trueport.locate.names import NameCheck


def _source() -> Toy:
    x = np.arange(6.0).reshape(2, 3)
    return Toy(
        (
            node("shape_1", "Shape", ["x"], lambda v: np.array(v.shape)),
            node("shape_2", "Concat", ["shape_1"], lambda s: np.array([s[1], s[0]])),
            node("y", "Reshape", ["x", "shape_2"], lambda v, s: v.reshape(tuple(s))),
        ),
        {"x": x},
        ("y",),
    )


def _anew() -> Toy:
    """The same program, whose first value is folded away, so that the second one gets its number."""
    parts = _source().nodes
    return Toy(
        (
            node("shape_0", "Shape", ["x"], lambda v: np.array(v.shape)),
            node("shape_1", "Concat", ["shape_0"], lambda s: np.array([s[1], s[0]])),
            (replace(parts[2][0], inputs=("x", "shape_1")), parts[2][1]),
        ),
        _source().feeds,
        ("y",),
    )


def _checked(source: Toy, candidate: Toy) -> NameCheck:
    names = NameCheck(source.run())
    candidate.follow(names.see, None)
    return names


def test_names_of_a_right_candidate_are_trusted() -> None:
    assert not _checked(_source(), _source()).numbered_anew


def test_names_that_moved_on_to_other_values_are_not() -> None:
    names = _checked(_source(), _anew())
    assert names.numbered_anew
    seen: list[TracedNode] = []

    def see(n: TracedNode, outputs: list[Any]) -> list[Any]:
        seen.append(n)
        return outputs

    names.following(_anew().follow)(see, None)
    assert [n.outputs for n in seen] == [("shape_0",), ("shape_1 (numbered anew)",), ("y",)]
    assert seen[2].inputs == ("x", "shape_1 (numbered anew)")
    assert names.marked(_anew().run()).nodes == tuple(seen)


def test_a_wrong_integer_is_a_fault_and_no_other_name() -> None:
    wrong = _source().with_("shape_2", lambda s: np.array([6, 1]))
    assert not _checked(_source(), wrong).numbered_anew


def test_an_operator_that_was_dropped_is_a_fault_and_no_other_name() -> None:
    # The value under the name is one that the source has, but what the source has under it is nowhere.
    dropped = _source().with_("shape_2", lambda s: s)
    assert not _checked(_source(), dropped).numbered_anew
