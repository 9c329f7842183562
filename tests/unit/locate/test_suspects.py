"""What moves elements is not blamed for what they are."""

from __future__ import annotations

import numpy as np

from trueport.core.trace import TracedNode
from trueport.locate.suspects import moves_only, ordered

X = np.random.default_rng(0).standard_normal((3, 4))


def _group(*operators: str) -> list[TracedNode]:
    return [TracedNode(f"n{i}", operator) for i, operator in enumerate(operators)]


def _names(*args: np.ndarray, operators: tuple[str, ...]) -> tuple[list[str], list[str]]:
    first, rest = ordered(_group(*operators), *args)
    return [n.operator for n in first], [n.operator for n in rest]


def test_other_numbers_are_made_by_what_computes() -> None:
    assert _names(X, X * 1.1, operators=("Transpose", "Conv", "Squeeze")) == (["Conv"], ["Squeeze", "Transpose"])


def test_the_same_numbers_in_another_order_are_made_by_what_moves() -> None:
    assert _names(X, X.T.reshape(3, 4), operators=("Mul", "Transpose")) == (["Transpose"], ["Mul"])


def test_another_shape_is_made_by_what_moves() -> None:
    assert _names(X, X[:2], operators=("Mul", "Reshape")) == (["Reshape"], ["Mul"])


def test_a_group_of_one_kind_begins_with_its_last_node() -> None:
    assert _names(X, X + 1, operators=("Mul", "Add")) == (["Add", "Mul"], [])
    assert _names(X, X + 1, operators=("Identity", "Reshape")) == (["Reshape", "Identity"], [])


def test_operators_of_all_frameworks_are_known() -> None:
    moving = _group("aten.view.default", "aten._unsafe_view.default", "ExpandDims", "DepthToSpace", "aten.t.default")
    assert all(map(moves_only, moving))
    assert not any(map(moves_only, _group("aten.add.Tensor", "Conv2D", "Gather", "aten.tanh.default", "Slice")))
