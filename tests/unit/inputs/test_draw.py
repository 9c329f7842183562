"""Drawn inputs are of the example's kind, differ from one another, and depend on nothing but the seed."""

from __future__ import annotations

import numpy as np
import pytest

from trueport.inputs import DynamicAxis, LeafSpec, draw_inputs, redraw
from trueport.inputs.draw import REGIMES, fewer

RNG = np.random.default_rng(2)
IMAGE = RNG.normal(size=(2, 3)).astype(np.float32)
TOKENS = np.array([[5, 17, 9, 6]], np.int64)
MASK = np.array([[True, True, False, True]])
ADDITIVE = np.array([[0.0, np.finfo(np.float32).min], [0.0, 0.0]], np.float32)
ZERO_ONE = np.array([1, 1, 0, 1], np.float32)
SHARES = np.array([0.1, 0.5, 0.9], np.float32)
POSITIONS = np.arange(4, dtype=np.int64)[None] + 2


def _draw(*examples, samples=4, seed=0, axes=None, **options):
    leaves = [LeafSpec(f"x{i}", np.asarray(e), (axes or {}).get(i, {})) for i, e in enumerate(examples)]
    return draw_inputs(leaves, samples=samples, seed=seed, **options)


def _of(sets, regime):
    return [s for s in sets if s.regime == regime]


def _axis(i, axis, symbol="n", **options):
    return {i: {axis: DynamicAxis(f"x{i}", axis, symbol, **options)}}


def _key(item):
    return tuple((a.dtype.name, a.shape, a.tobytes()) for a in item.arrays)


# ---------------------------------------------------------------------- the list as a whole


def test_the_example_comes_first_and_unchanged():
    first = _draw(IMAGE, TOKENS)[0]
    assert (first.label, first.regime) == ("example", "example")
    assert first.arrays[0] is IMAGE


def test_given_sets_follow_the_example():
    sets = _draw(IMAGE, given=[(IMAGE + 1,), (IMAGE + 2,)])
    assert [s.regime for s in sets[:4]] == ["example", "given", "given", "redrawn"]
    assert np.array_equal(sets[2].arrays[0], IMAGE + 2)


def test_every_edge_regime_is_there_and_nonfinite_comes_last():
    sets = _draw(IMAGE)
    assert [s.regime for s in sets if s.regime in REGIMES] == list(REGIMES)
    assert sets[-1].regime == "nonfinite"
    assert not _of(_draw(IMAGE, nonfinite=False), "nonfinite")
    assert not _of(_draw(TOKENS), "nonfinite")


def test_nothing_is_repeated():
    for examples in ((IMAGE,), (TOKENS,), (MASK,), (np.zeros(2, np.float32),), (np.array(3),), (IMAGE, MASK, TOKENS)):
        keys = [_key(s) for s in _draw(*examples, samples=8)]
        assert len(set(keys)) == len(keys)


def test_one_integer_tells_no_range_and_varies_towards_zero():
    drawn = {int(v) for s in _draw(np.array([7, 7])) for v in s.arrays[0]}
    assert len(drawn) > 1
    assert drawn <= set(range(8))


def test_an_input_that_cannot_vary_gives_one_set():
    assert len(_draw(np.zeros((0, 3), np.float32))) == 1


def test_labels_are_unique():
    sets = _draw(IMAGE, TOKENS, axes={**_axis(0, 0), **_axis(1, 1, "m")}, given=[(IMAGE + 1, TOKENS + 1)])
    labels = [s.label for s in sets]
    assert len(set(labels)) == len(labels)


def test_the_seed_decides_everything():
    first, again, other = (_draw(IMAGE, TOKENS, MASK, seed=s, axes=_axis(0, 0)) for s in (3, 3, 4))
    assert [_key(s) for s in first] == [_key(s) for s in again]
    assert [_key(s) for s in first[1:]] != [_key(s) for s in other[1:]]


def test_global_random_state_is_left_alone():
    before = np.random.get_state()[1].tolist()
    _draw(IMAGE, TOKENS, axes=_axis(0, 0))
    assert np.random.get_state()[1].tolist() == before


def test_the_example_is_not_changed():
    kept = [a.copy() for a in (IMAGE, TOKENS, MASK, ADDITIVE)]
    _draw(IMAGE, TOKENS, MASK, ADDITIVE)
    assert all(np.array_equal(a, b) for a, b in zip((IMAGE, TOKENS, MASK, ADDITIVE), kept, strict=True))


@pytest.mark.parametrize("samples", [1, 3, 10])
def test_as_many_redrawn_sets_as_asked_for(samples):
    assert len(_of(_draw(IMAGE, samples=samples), "redrawn")) == samples


def test_redraw_goes_on_where_the_first_draw_ended():
    leaves = [LeafSpec("x", IMAGE)]
    keys = {_key(s) for s in draw_inputs(leaves, samples=3, seed=0)}
    more = [redraw(leaves, number=i, seed=0) for i in range(1, 6)]
    keys |= {_key(s) for s in more}
    assert len(keys) == len(draw_inputs(leaves, samples=3, seed=0)) + 5
    assert _key(redraw(leaves, number=2, seed=0)) == _key(more[1])
    assert more[0].regime == "redrawn"


# ---------------------------------------------------------------------- kinds


ALL = {
    "float32": IMAGE, "float16": IMAGE.astype(np.float16), "float64": IMAGE.astype(np.float64), "tokens": TOKENS,
    "int8": TOKENS.astype(np.int8), "uint8": TOKENS.astype(np.uint8), "mask": MASK, "additive": ADDITIVE,
    "scalar": np.array(1.5, np.float32), "integer scalar": np.array(4), "empty": np.zeros((2, 0), np.float32),
}  # fmt: skip


@pytest.mark.parametrize("name", ALL)
def test_type_and_shape_are_kept(name):
    example = ALL[name]
    for item in _draw(example):
        assert item.arrays[0].dtype == example.dtype
        assert item.arrays[0].shape == example.shape


@pytest.mark.parametrize("name", ["tokens", "int8", "uint8"])
def test_integers_stay_in_the_observed_range(name):
    drawn = np.concatenate([s.arrays[0].ravel() for s in _draw(ALL[name], samples=20) if s.regime != "small"])
    assert drawn.min() == 5
    assert drawn.max() == 17


@pytest.mark.parametrize("name", ["tokens", "int8", "uint8"])
def test_one_regime_puts_zeros_among_positive_integers(name):
    (small,) = _of(_draw(ALL[name]), "small")
    assert (small.arrays[0] == 0).any()
    assert np.isin(small.arrays[0], [0, *ALL[name].ravel()]).all()


def test_integers_have_the_ends_of_their_range_as_regimes():
    sets = _draw(TOKENS)
    assert set(_of(sets, "zeros")[0].arrays[0].ravel()) == {5}
    assert set(_of(sets, "constant")[0].arrays[0].ravel()) == {17}


def test_integers_of_the_whole_range():
    example = np.array([np.iinfo(np.int64).min, np.iinfo(np.int64).max])
    assert len(_of(_draw(example), "redrawn")) == 4


def test_unsigned_integers_beyond_those_of_int64():
    example = np.array([0, 2**64 - 1], np.uint64)
    assert len(_of(_draw(example), "redrawn")) == 4


def test_boolean_masks_leave_something_in_every_row():
    example = np.zeros((20, 6), bool)
    example[:, 0] = True
    for item in _of(_draw(example, samples=10), "redrawn"):
        assert item.arrays[0].dtype == bool
        assert item.arrays[0].any(axis=-1).all()


@pytest.mark.parametrize("example", [ADDITIVE, ZERO_ONE], ids=["additive", "zero and one"])
def test_floating_point_masks_stay_masks(example):
    allowed = set(example.ravel().tolist())
    for item in _draw(example, samples=10):
        if item.regime != "nonfinite":
            assert set(item.arrays[0].ravel().tolist()) <= allowed


def test_shares_stay_between_zero_and_one():
    for item in _of(_draw(SHARES, samples=20), "redrawn"):
        assert ((item.arrays[0] >= 0) & (item.arrays[0] <= 1)).all()


@pytest.mark.parametrize("sign", [1, -1])
def test_sign_is_kept(sign):
    example = (sign * (5 + np.abs(RNG.normal(size=50)))).astype(np.float32)
    for item in _of(_draw(example, samples=5), "redrawn"):
        assert (np.sign(item.arrays[0]) == sign).all()


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_scale_is_kept(scale):
    example = (scale * RNG.normal(size=(50, 20))).astype(np.float32)
    for item in _of(_draw(example), "redrawn"):
        assert 0.8 * scale < item.arrays[0].std() < 1.2 * scale


@pytest.mark.parametrize(
    "example",
    [
        np.array([6e4, -6e4], np.float16),
        np.array([3e38, -3e38], np.float32),
        np.array([1e37, 2e37], np.float32),
        np.array([1e150, -1e150]),
    ],
    ids=["float16", "float32", "large float32", "float64"],
)
def test_numbers_of_the_largest_size_stay_numbers(example):
    for item in _draw(example, samples=10):
        if item.regime != "nonfinite":
            assert np.isfinite(item.arrays[0]).all(), item.label


def test_complex_inputs_keep_both_parts():
    example = (RNG.normal(size=20) + 1j * RNG.normal(size=20)).astype(np.complex64)
    for item in _of(_draw(example), "redrawn"):
        assert item.arrays[0].dtype == np.complex64
        assert np.abs(item.arrays[0].imag).min() > 0


def test_what_is_not_finite_in_the_example_does_not_spread():
    example = np.array([np.nan, np.inf, 1.0, 2.0], np.float32)
    for item in _of(_draw(example), "redrawn"):
        assert np.isfinite(item.arrays[0]).all()
    assert _of(_draw(np.full(3, np.nan, np.float32)), "redrawn")


# ---------------------------------------------------------------------- edge regimes


def test_edge_regimes_are_what_they_are_called():
    sets = {s.regime: s.arrays[0] for s in _draw(RNG.normal(size=(40, 40)).astype(np.float32))}
    assert not sets["zeros"].any()
    assert np.unique(sets["constant"]).size == 1
    assert sets["constant"].flat[0] != 0
    assert 50 < sets["large"].std() < 200
    assert 5e-4 < sets["small"].std() < 2e-3
    assert (sets["negative"] <= 0).all()


def test_large_half_precision_numbers_stay_finite():
    for item in _of(_draw((1000 * IMAGE).astype(np.float16)), "large"):
        assert np.isfinite(item.arrays[0]).all()


def test_nonfinite_regime_has_all_three_and_numbers_as_well():
    drawn = _of(_draw(RNG.normal(size=64).astype(np.float32)), "nonfinite")[0].arrays[0]
    assert np.isnan(drawn).any()
    assert (drawn == np.inf).any()
    assert (drawn == -np.inf).any()
    assert np.isfinite(drawn).sum() > 40


# ---------------------------------------------------------------------- sizes


def _sizes(sets, leaf=0, axis=0):
    return {s.arrays[leaf].shape[axis] for s in _of(sets, "size")}


@pytest.mark.parametrize("example", [2, 3, 4, 7, 8])
def test_sizes_are_one_two_an_odd_one_and_a_larger_one(example):
    sizes = _sizes(_draw(np.ones((example, 3), np.float32) * IMAGE[:1], axes=_axis(0, 0)))
    assert {1, 2} <= sizes
    assert any(s % 2 and s not in (1, example) for s in sizes)
    assert max(sizes) > example


def test_no_dynamic_axis_no_other_size():
    assert not _of(_draw(IMAGE), "size")


@pytest.mark.parametrize(("low", "high"), [(2, None), (1, 4), (3, 6), (4, 4), (10, None), (0, 5)])
def test_sizes_stay_in_the_range(low, high):
    sizes = _sizes(_draw(RNG.normal(size=(4, 3)).astype(np.float32), axes=_axis(0, 0, minimum=low, maximum=high)))
    assert sizes
    assert all(s >= low and (high is None or s <= high) for s in sizes)


def test_axes_of_one_symbol_change_together():
    axes = {**_axis(0, 0), **_axis(1, 1)}
    sets = _of(_draw(RNG.normal(size=(4, 3)).astype(np.float32), TOKENS, axes=axes), "size")
    assert len(sets) >= 4
    assert all(s.arrays[0].shape[0] == s.arrays[1].shape[1] == dict(s.sizes)["n"] for s in sets)


def test_axes_of_two_symbols_change_apart_and_together():
    axes = {0: {0: DynamicAxis("x0", 0, "a"), 1: DynamicAxis("x0", 1, "b")}}
    shapes = {s.arrays[0].shape for s in _of(_draw(RNG.normal(size=(4, 3)).astype(np.float32), axes=axes), "size")}
    assert (1, 1) in shapes
    assert any(a == 4 and b != 3 for a, b in shapes)
    assert any(a != 4 and b == 3 for a, b in shapes)
    assert any(a <= 2 < b for a, b in shapes)


@pytest.mark.parametrize(("scale", "offset"), [(2, 0), (1, 3), (4, 1)])
def test_derived_axes_follow_their_symbol(scale, offset):
    base = RNG.normal(size=(3, 2)).astype(np.float32)
    derived = RNG.normal(size=(3 * scale + offset,)).astype(np.float32)
    axes = {**_axis(0, 0), **_axis(1, 0, scale=scale, offset=offset)}
    sets = _of(_draw(base, derived, axes=axes), "size")
    assert {s.arrays[0].shape[0] for s in sets} >= {1, 2}
    assert all(s.arrays[1].shape[0] == scale * s.arrays[0].shape[0] + offset for s in sets)


def test_counters_keep_counting_at_other_sizes():
    for item in _of(_draw(POSITIONS, axes=_axis(0, 1)), "size"):
        drawn = item.arrays[0]
        assert drawn.tolist() == [list(range(2, 2 + drawn.shape[1]))]


def test_kinds_are_kept_at_other_sizes():
    axes = {**_axis(0, 1), **_axis(1, 1), **_axis(2, 1)}
    additive = np.array([[0.0, -1e9, 0.0, 0.0]], np.float32)
    for item in _of(_draw(TOKENS, MASK, additive, axes=axes), "size"):
        tokens, mask, bias = item.arrays
        assert ((tokens >= 5) & (tokens <= 17)).all()
        assert mask.dtype == bool
        assert mask.any(axis=-1).all()
        assert set(bias.ravel().tolist()) <= {0.0, float(np.float32(-1e9))}


def test_of_a_large_model_no_size_is_tried_that_costs_many_runs():
    leaves = [LeafSpec("x", np.ones((2, 3), np.float32), {0: DynamicAxis("x", 0, "N")})]
    sets = draw_inputs(leaves, samples=1, seed=0)
    kept = [s.sizes for s in fewer(sets) if s.regime == "size"]
    assert kept == [(("N", 1),), (("N", 3),)]
    assert (("N", 7),) in [s.sizes for s in sets]
