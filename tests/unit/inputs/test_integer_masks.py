"""Attention masks of text models are integers: redrawn they stay masks with something left in each row."""

from __future__ import annotations

import numpy as np
import pytest

from trueport.inputs.draw import draw_inputs
from trueport.inputs.spec import DynamicAxis, LeafSpec

MASK = np.array([[1, 1, 1, 0], [1, 1, 0, 0]])


def leaf(example, name="mask") -> LeafSpec:
    axes = {0: DynamicAxis(name, 0, "batch"), 1: DynamicAxis(name, 1, "time")}
    return LeafSpec(name, np.asarray(example), axes)


@pytest.mark.parametrize("seed", range(5))
def test_no_row_is_masked_out_at_any_size_and_in_any_regime(seed):
    sets = draw_inputs([leaf(MASK), LeafSpec("x", np.ones(3, np.float32))], samples=5, seed=seed)
    assert {item.regime for item in sets} >= {"redrawn", "zeros", "size", "nonfinite"}
    for item in sets:
        mask = item.arrays[0]
        assert mask.dtype == MASK.dtype
        assert set(np.unique(mask)) <= {0, 1}
        assert mask.any(axis=-1).all(), item.label


def test_redrawn_masks_differ():
    masks = [item.arrays[0].tolist() for item in draw_inputs([leaf(MASK)], samples=3, seed=0)]
    assert len({str(mask) for mask in masks}) == len(masks) > 3


def test_a_matrix_of_ones_is_a_mask_that_hides_nothing():
    assert LeafSpec("x", np.ones((2, 3), np.int64)).is_integer_mask


@pytest.mark.parametrize("example", [[[0, 1, 2]], [[0, 0, 0]], [1, 1], [[0.0, 1.0]], 1])
def test_other_inputs_are_no_integer_masks(example):
    assert not LeafSpec("x", np.asarray(example)).is_integer_mask
