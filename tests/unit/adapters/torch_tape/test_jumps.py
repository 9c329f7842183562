"""Discontinuities are decided by margin: near a jump is tainted, exactly on it with exact values is not."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from tests.unit.adapters.torch_tape.running import normal, reference

THIRD = torch.tensor([1 / 3, 0.5, 2 / 3, 0.9])


def _unstable(program, *inputs, output=0):
    return reference(program, *inputs).outputs[output].unstable.tolist()


NEAR = {
    "floor": (lambda x: (x * 3).floor(), [True, False, True, False]),
    "ceil": (lambda x: (x * 3).ceil(), [True, False, True, False]),
    "trunc": (lambda x: (x * 3).trunc(), [True, False, True, False]),
    "int": (lambda x: (x * 3).int(), [True, False, True, False]),
    "long": (lambda x: (x * 3).to(torch.int64), [True, False, True, False]),
    "floor_divide": (lambda x: x * 3 // 1, [True, False, True, False]),
    "div floor": (lambda x: torch.div(x * 3, 1, rounding_mode="floor"), [True, False, True, False]),
    "div trunc": (lambda x: torch.div(x * 3, 1, rounding_mode="trunc"), [True, False, True, False]),
    "remainder": (lambda x: (x * 3) % 1, [True, False, True, False]),
    "fmod": (lambda x: torch.fmod(x * 3, 1), [True, False, True, False]),
    "frac": (lambda x: (x * 3).frac(), [True, False, True, False]),
    "round": (lambda x: (x * 1.5).round(), [True, False, False, False]),
    "sign": (lambda x: (x * 3 - 1).sign(), [True, False, False, False]),
    "greater": (lambda x: x * 3 > 1, [True, False, False, False]),
    "greater or equal": (lambda x: x * 3 >= 2, [False, False, True, False]),
    "equal": (lambda x: x * 3 == 1, [True, False, False, False]),
    "less, the other way round": (lambda x: 1 < x * 3, [True, False, False, False]),  # noqa: SIM300
    "two tensors": (lambda x: x * 3 > torch.ones_like(x), [True, False, False, False]),
    "heaviside": (lambda x: torch.heaviside(x * 3 - 1, x), [True, False, False, False]),
    "where": (lambda x: torch.where(x * 3 > 1, x, -x), [True, False, False, False]),
    "mask": (lambda x: x * (x * 3 > 1), [True, False, False, False]),
    "and": (lambda x: (x * 3 > 1) & (x > 0), [True, False, False, False]),
    "not": (lambda x: ~(x * 3 > 1), [True, False, False, False]),
    "bool to float": (lambda x: (x * 3 > 1).float() * 2, [True, False, False, False]),
    "bucketize": (lambda x: torch.bucketize(x * 3, torch.tensor([1.0, 2.0])), [True, False, True, False]),
    "hardshrink": (lambda x: nn.functional.hardshrink(x * 3, 1.0), [True, False, False, False]),
}


@pytest.mark.parametrize("name", NEAR)
def test_near_a_jump_is_tainted_and_away_from_it_is_not(name):
    program, expected = NEAR[name]
    assert _unstable(program, THIRD) == expected


CONTINUOUS = {
    "where without a step": lambda x: torch.where(x * 3 > 1, x, x),
    "relu": lambda x: (x * 3 - 1).relu(),
    "clamp": lambda x: (x * 3).clamp(max=1),
    "abs": lambda x: (x * 3 - 1).abs(),
    "maximum": lambda x: torch.maximum(x * 3, torch.ones_like(x)),
    "max": lambda x: (x * 3).max(),
    "sorted values": lambda x: (x * 3).sort().values,
    "softmax": lambda x: (x * 3).softmax(0),
}


@pytest.mark.parametrize("name", CONTINUOUS)
def test_a_kink_is_no_jump(name):
    assert not np.any(_unstable(CONTINUOUS[name], THIRD))


EXACT = torch.tensor([0.0, 1.0, 2.0, -3.0])
ON_IT = {
    "floor": lambda x: x.floor(),
    "floor of an exact product": lambda x: (x * 2).floor(),
    "round a half": lambda x: (x / 2).round(),
    "greater": lambda x: x > 1,
    "equal": lambda x: x == 2,
    "sign": lambda x: x.sign(),
    "int": lambda x: x.int(),
    "remainder": lambda x: x % 2,
    "relu first": lambda x: x.relu().ceil(),
    "argmax": lambda x: torch.stack([x, x]).argmax(0),
    "stable sort": lambda x: torch.cat([x, x]).sort(stable=True).indices,
}


@pytest.mark.parametrize("name", ON_IT)
def test_exactly_on_a_jump_with_exact_values_is_decided(name):
    assert not np.any(_unstable(ON_IT[name], EXACT))


# ---------------------------------------------------------------------- selection

TIE = torch.tensor([[0.1, 0.7, 0.7, 0.2], [0.1, 0.7, 0.3, 0.2]])


def _noisy(x):
    return x.sigmoid()


@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_a_tie_of_rounded_values_has_no_first(name):
    sign = 1 if name == "argmax" else -1
    assert _unstable(lambda x: getattr(_noisy(x) * sign, name)(1), TIE) == [True, False]


def test_a_near_tie_of_rounded_values_has_no_first():
    near = TIE.clone()
    near[0, 1] = torch.nextafter(near[0, 1], torch.tensor(1.0))
    assert _unstable(lambda x: _noisy(x).argmax(1), near) == [True, False]


def test_a_tie_of_exact_values_has_a_first():
    assert _unstable(lambda x: x.argmax(1), TIE) == [False, False]


def test_topk_ties_leave_the_values():
    told = reference(lambda x: x.topk(2, dim=1), TIE)
    values, indices = told.outputs
    assert not values.unstable.any()
    assert indices.unstable[0].any()
    assert not indices.unstable[1].any()


def test_a_tie_across_the_end_of_topk():
    told = reference(lambda x: x.topk(1, dim=1), TIE)
    assert not told.outputs[0].unstable.any()
    assert told.outputs[1].unstable.tolist() == [[True], [False]]


def test_indices_of_a_sort_with_ties():
    values, indices = reference(lambda x: x.sort(dim=1), TIE).outputs
    assert not values.unstable.any()
    assert indices.unstable.tolist() == [[False, False, True, True], [False] * 4]


ASCENDING = {
    "sort": lambda x: x.sort(dim=1).indices,
    "argsort": lambda x: x.argsort(dim=1),
    "topk of the smallest": lambda x: (-x).topk(2, dim=1, largest=False).indices,
}


@pytest.mark.parametrize("name", ASCENDING)
def test_exact_ties_in_ascending_order_have_no_first_either(name):
    unstable = reference(ASCENDING[name], TIE).outputs[0].unstable
    assert unstable[0].any()
    assert not unstable[1].any()


def test_values_of_ties_that_rounding_did_not_make_are_comparable():
    """Zeros behind a ReLU: which of them is selected is open, that it is zero is not."""
    x = torch.tensor([[-1.0, -2.0, 3.0, -4.0]])
    for program in (
        lambda x: x.relu().topk(2).values,
        lambda x: x.relu().sort().values,
        lambda x: x.relu().kthvalue(2).values,
    ):
        assert not np.any(_unstable(program, x))


def test_what_is_gathered_at_a_tie_is_tainted_only_where_it_matters():
    def same(x):
        return x.gather(1, _noisy(x).argmax(1, keepdim=True))

    def other(x):
        return torch.arange(4.0).expand(2, 4).gather(1, _noisy(x).argmax(1, keepdim=True))

    assert _unstable(same, TIE) == [[False], [False]]
    assert _unstable(other, TIE) == [[True], [False]]


def test_selection_along_another_dimension():
    assert _unstable(lambda x: _noisy(x).T.contiguous().argmax(0), TIE) == [True, False]


# ---------------------------------------------------------------------- flow


def test_taint_follows_the_data_flow_and_nothing_else():
    def program(x):
        step = (x * 3).floor()
        return step, step.sum(), step * 0, x + 1, torch.cat([step, x])

    told = [o.unstable for o in reference(program, THIRD).outputs]
    assert told[0].tolist() == [True, False, True, False]
    assert told[1].all()
    assert not told[2].any()
    assert not told[3].any()
    assert told[4].tolist() == [True, False, True, False] + [False] * 4


def test_a_shape_that_rounding_decides_is_undecidable():
    told = reference(lambda x: x[x * 3 > 1], THIRD)
    assert told.tape.undecidable
    assert told.outputs[0].unstable.all()


def test_a_shape_far_from_its_decision_is_decided():
    told = reference(lambda x: x[x * 3 > 1.7], THIRD)
    assert not told.tape.undecidable
    assert told.outputs[0].value.shape == (2,)


def test_the_real_run_on_the_other_side_of_a_jump():
    """Where float32 falls on the other side than float64, the element is tainted, never a false alarm."""
    x = normal(2000, seed=3)
    told = reference(lambda x: (x * 0.1 * 30).floor(), x)
    differs = told.outputs[0].value != told.real[0]
    assert not (differs & ~told.outputs[0].unstable).any()


def test_taint_is_rare_on_ordinary_values():
    x = normal(10_000, seed=4)
    assert reference(lambda x: (x * 3).floor(), x).outputs[0].unstable.mean() < 1e-3
