"""Drawn inputs stay where the operators that read them accept them, in every regime and at every size."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from trueport.core.domain import Domain, DomainKind
from trueport.inputs import DynamicAxis, LeafSpec, draw_inputs, redraw
from trueport.inputs.confined import drawn_within, typed, within

X = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
INDEX = np.array([[0, 1], [2, 1]], np.int64)


def _sets(example, domain, *others, axes=None):
    leaves = [LeafSpec("x0", np.asarray(example), (axes or {}).get(0, {}), domain)]
    leaves += [LeafSpec(f"x{i + 1}", e, (axes or {}).get(i + 1, {})) for i, e in enumerate(others)]
    return draw_inputs(leaves, samples=4, seed=1)


def _drawn(sets):
    return [s for s in sets if s.regime != "nonfinite"]


def test_without_a_domain_nothing_changes():
    plain = draw_inputs([LeafSpec("x0", X), LeafSpec("x1", INDEX)], samples=4, seed=1)
    same = draw_inputs([LeafSpec("x0", X, {}, None), LeafSpec("x1", INDEX, {}, None)], samples=4, seed=1)
    assert [[a.tobytes() for a in s.arrays] for s in plain] == [[a.tobytes() for a in s.arrays] for s in same]


@pytest.mark.parametrize(
    ("domain", "accepts"),
    [
        (Domain(low=0.25), lambda x: (x >= 0.25).all()),
        (Domain(high=-1), lambda x: (x <= -1).all()),
        (Domain(low=-1, high=1), lambda x: (np.abs(x) <= 1).all()),
        (Domain(gap=0.5), lambda x: (np.abs(x) >= 0.5).all()),
        (Domain(DomainKind.MASK, values=(-1e4, 0)), lambda x: np.isin(x, [-1e4, 0]).all()),
    ],
)
def test_floats_in_every_regime(domain, accepts):
    example = within(X, domain, {})
    for item in _drawn(_sets(example, domain)):
        assert accepts(item.arrays[0]), item.label
        assert item.arrays[0].dtype == np.float32


def test_a_denominator_keeps_both_signs():
    values = np.concatenate([s.arrays[0].ravel() for s in _sets(X, Domain(gap=0.5))])
    assert (values < 0).any()
    assert (values > 0).any()


def test_indices_cover_the_whole_table_and_nothing_else():
    domain = Domain(DomainKind.INDEX, low=0, high=9)
    values = np.concatenate([s.arrays[0].ravel() for s in _sets(np.zeros((20, 20), np.int64), domain)])
    assert set(values.tolist()) == set(range(10))


def test_an_index_follows_the_size_of_a_dynamic_axis():
    domain = Domain(DomainKind.INDEX, low=0, high_symbol="n", high_offset=-1)
    axes = {1: {0: DynamicAxis("x1", 0, "n")}}
    tops = {}
    for item in _sets(np.zeros(50, np.int64), domain, X, axes=axes):
        size = item.arrays[1].shape[0]
        assert item.arrays[0].max() < size, item.label
        if item.regime == "size":
            tops[size] = int(item.arrays[0].max())
    assert tops == {size: size - 1 for size in tops}
    assert len(tops) > 2


def test_a_length_is_at_least_one_even_when_the_axis_is_empty():
    domain = Domain(DomainKind.LENGTH, low=1, high_symbol="t")
    assert domain.bounds({"t": 0}) == (1, 1)
    assert domain.bounds({"t": 5}) == (1, 5)
    assert domain.at({"t": 5}) == Domain(DomainKind.LENGTH, low=1, high=5)


def test_settings_never_change():
    shape = np.array([2, -1], np.int64)
    sets = _sets(shape, Domain(DomainKind.SETTING, fixed=True), X, axes={1: {0: DynamicAxis("x1", 0, "n")}})
    assert all(s.arrays[0] is shape for s in sets)
    again = redraw(
        [LeafSpec("x0", shape, {}, Domain(DomainKind.SETTING, fixed=True)), LeafSpec("x1", X)], number=1, seed=0
    )
    assert again.arrays[0] is shape


@pytest.mark.parametrize("kind", [DomainKind.GRID, DomainKind.MASK])
def test_no_nan_in_what_becomes_an_address(kind):
    assert not [s for s in _sets(np.clip(X, -1, 1), Domain(kind, low=-1, high=1)) if s.regime == "nonfinite"]


def test_joined_domains_hold_what_both_accept():
    both = Domain(low=0, high=5).joined(Domain(DomainKind.INDEX, low=-1, high_symbol="n", high_offset=-1))
    assert (both.kind, both.low, both.high, both.high_symbol) == (DomainKind.INDEX, 0, 5, "n")
    assert both.bounds({"n": 3}) == (0, 2)
    fixed = Domain(DomainKind.SETTING, fixed=True)
    assert Domain(low=0).joined(fixed) is fixed
    assert fixed.joined(Domain(low=0)) is fixed


NARROW = ["bfloat16", "float8_e4m3fn", "float8_e5m2", "float4_e2m1fn", "int4", "uint4"]


@pytest.mark.parametrize("name", NARROW)
def test_types_of_ml_dtypes_are_drawn(name):
    dtype = np.dtype(getattr(ml_dtypes, name))
    example = np.abs(X).astype(dtype)
    sets = _sets(example, None)
    assert len(sets) > 4
    for item in sets:
        assert item.arrays[0].dtype == dtype
        if item.regime not in ("nonfinite",):
            assert np.isfinite(item.arrays[0].astype(np.float64)).all()


@pytest.mark.parametrize("name", ["bfloat16", "float16", "float64", "complex64", "complex128"])
def test_further_types_get_values_that_differ(name):
    dtype = np.dtype(getattr(ml_dtypes, name, name))
    sets = _sets(X.astype(dtype), None)
    assert len({s.arrays[0].tobytes() for s in sets if s.regime == "redrawn"}) == 4


def test_texts_are_drawn_from_those_of_the_example():
    example = np.array(["a", "b", "c"], object)
    for item in _sets(example, None):
        assert set(item.arrays[0].tolist()) <= {"a", "b", "c"}


def test_numbers_beyond_a_type_become_its_largest():
    assert typed(np.array([1e9, -1e9, np.inf]), np.dtype(np.float16)).tolist() == [65504, -65504, np.inf]
    assert typed(np.array([99, -99]), np.dtype(ml_dtypes.int4)).astype(int).tolist() == [7, -8]


def test_masks_leave_something_in_each_row():
    drawn = drawn_within(Domain(values=(0, 1)), (50, 2), np.dtype(np.int64), {}, np.random.default_rng(0))
    assert drawn is not None
    assert drawn.any(axis=-1).all()
    assert not drawn.all()
