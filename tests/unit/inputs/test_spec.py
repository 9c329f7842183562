"""What kind of values an input holds is read from its example."""

from __future__ import annotations

import numpy as np
import pytest

from trueport.inputs import LeafSpec


@pytest.mark.parametrize(
    ("values", "counts"),
    [
        (np.arange(5), True),
        (np.arange(3, 8), True),
        (np.arange(4)[None].repeat(2, axis=0), True),
        (np.arange(5)[::-1], False),
        (np.array([0, 2, 4]), False),
        (np.array([1, 1]), False),
        (np.array([3]), False),
        (np.array(3), False),
        (np.zeros((0,), np.int64), False),
        (np.arange(5.0), False),
        (np.array([False, True]), False),
        (np.arange(4).reshape(2, 2), True),
        (np.arange(4, dtype=np.uint8), True),
        (np.arange(4, dtype=np.uint8)[::-1], False),
    ],
)
def test_counter(values, counts):
    assert LeafSpec("x", values).is_counter is counts


@pytest.mark.parametrize(
    ("values", "masks"),
    [
        (np.array([0.0, 1.0, 1.0]), True),
        (np.array([0.0, -1e9]), True),
        (np.array([0.0, -np.inf]), True),
        (np.array([0.0, np.finfo(np.float16).min], np.float16), True),
        (np.array([0.0, 0.5]), False),
        (np.array([1.0, 2.0]), False),
        (np.array([0.0, 0.0]), False),
        (np.array([1.0, 1.0]), False),
        (np.array([0.0, 1.0, 2.0]), False),
        (np.array([0.0, np.nan]), False),
        (np.array(0.0), False),
        (np.zeros((0,)), False),
        (np.array([0, 1]), False),
        (np.array([True, False]), False),
    ],
)
def test_mask(values, masks):
    assert LeafSpec("x", values).is_mask is masks
