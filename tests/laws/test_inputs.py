"""Drawing is a function of leaves and seed, and keeps types."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from tests.laws.strategies import EXACT, FILLED, LAW, arrays
from trueport.inputs import DynamicAxis, LeafSpec, draw_inputs

NARROW = ("float32", "float16")
# Squares of the largest float64 numbers do not fit into a float64, and no model takes them.
WIDE = npst.arrays(np.float64, FILLED, elements=st.floats(-1e100, 1e100) | st.just(np.nan) | st.just(np.inf))
EXAMPLES = st.lists(arrays((*NARROW, *EXACT), FILLED) | WIDE, min_size=1, max_size=3)


def _leaves(examples, dynamic):
    return [
        LeafSpec(f"x{i}", e, {0: DynamicAxis(f"x{i}", 0, f"n{i}")} if dynamic and e.ndim else {})
        for i, e in enumerate(examples)
    ]


def _key(item):
    return item.label, item.regime, item.sizes, tuple((a.dtype.name, a.shape, a.tobytes()) for a in item.arrays)


@LAW
@given(EXAMPLES, st.integers(1, 4), st.integers(0, 2**31), st.booleans())
def test_deterministic(examples, samples, seed, dynamic):
    first, second = (
        draw_inputs(_leaves([e.copy() for e in examples], dynamic), samples=samples, seed=seed) for _ in range(2)
    )
    assert [_key(s) for s in first] == [_key(s) for s in second]


@LAW
@given(EXAMPLES, st.integers(1, 4), st.booleans())
def test_the_example_first_nothing_twice_and_types_kept(examples, samples, dynamic):
    sets = draw_inputs(_leaves(examples, dynamic), samples=samples, seed=0)
    assert all(a is e for a, e in zip(sets[0].arrays, examples, strict=True))
    values = [_key(s)[3] for s in sets]
    assert len(set(values)) == len(values)
    for item in sets:
        assert [a.dtype for a in item.arrays] == [e.dtype for e in examples]
        assert [a.ndim for a in item.arrays] == [e.ndim for e in examples]
        if item.regime != "size":
            assert [a.shape for a in item.arrays] == [e.shape for e in examples]


@LAW
@given(arrays(("int64", "int32", "uint8"), FILLED), st.integers(0, 100))
def test_integers_stay_in_the_observed_range(example, seed):
    # A single number tells no range: it may go down to zero, or up to one.
    single = example.min() == example.max()
    low, high = (min(int(example.min()), 0), max(int(example.max()), 1)) if single else (example.min(), example.max())
    for item in draw_inputs(_leaves([example], dynamic=False), samples=3, seed=seed):
        if item.regime == "small":
            continue  # puts zeros among them
        assert item.arrays[0].min() >= low
        assert item.arrays[0].max() <= high


@LAW
@given(arrays(NARROW, FILLED) | WIDE, st.integers(0, 100))
def test_numbers_stay_finite_outside_of_the_regime_for_the_others(example, seed):
    for item in draw_inputs(_leaves([example], dynamic=False), samples=3, seed=seed):
        if item.regime not in ("nonfinite", "example"):
            assert np.isfinite(item.arrays[0]).all()


@LAW
@given(st.integers(1, 12), st.integers(1, 12), st.integers(0, 12), st.integers(1, 3), st.integers(0, 3))
def test_sizes_keep_to_their_range_and_derivation(example, low, extra, scale, offset):
    high = low + extra
    base = DynamicAxis("x0", 0, "n", low, high)
    derived = DynamicAxis("x1", 0, "n", low, high, scale, offset)
    leaves = [
        LeafSpec("x0", np.zeros((example, 2)), {0: base}),
        LeafSpec("x1", np.zeros(scale * example + offset), {0: derived}),
    ]
    sized = [s for s in draw_inputs(leaves, samples=1, seed=0) if s.regime == "size"]
    assert sized
    for item in sized:
        n = item.arrays[0].shape[0]
        assert low <= n <= high
        assert item.arrays[1].shape == (scale * n + offset,)
