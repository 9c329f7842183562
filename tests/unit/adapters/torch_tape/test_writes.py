"""In-place operators, views and views of views: what is written is written in float64 as well."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from tests.unit.adapters.torch_tape.running import doubled, eager, input_set, normal, reference
from trueport.oracle.compare import compare_arithmetic
from trueport.oracle.noise import SCREEN

X = normal(4, 6)


def in_place(x):
    y = x.clone()
    y.mul_(3).add_(1).sigmoid_()
    return y


def row(x):
    y = x.exp()
    y[1].mul_(2)
    return y


def view_of_view(x):
    y = x.exp()
    v = y[1:]
    w = v[:, 2:4]
    w.add_(1)
    v[0].sqrt_()
    return y, v, w


def transposed(x):
    y = x.exp()
    y.T.reshape(6, 4).mul_(0.5)
    y.mT[0].div_(4)
    return y


def base_after_view(x):
    y = x.exp()
    v = y[2]
    y.mul_(x)
    return v, y


def sibling_views(x):
    y = x.exp()
    a, b = y.chunk(2, dim=1)
    a.mul_(b)
    b.copy_(a)
    return y


def flattened(x):
    y = x.exp()
    y.view(-1)[::3].log_()
    y.flatten()[1:3].zero_()
    return y


def strided(x):
    y = x.exp()
    torch.as_strided(y, (2, 2), (6, 2), 1).neg_()
    y.diagonal().fill_(2)
    return y


def masked(x):
    y = x.exp()
    y[x > 0] = 0
    y[x < -1] += x[x < -1]
    y[torch.tensor([0, 2]), torch.tensor([1, 1])] = x[0, :2]
    return y


def swapped(x):
    y = x.exp()
    y[0], y[1] = y[1].clone(), y[0].clone()
    return y


def detached(x):
    y = x.exp()
    y.detach()[0].mul_(4)
    return y


def unbound(x):
    y = x.exp()
    for i, part in enumerate(y.unbind(0)):
        part.mul_(i + 1)
    return y


def accumulated(x):
    total = torch.zeros(6, dtype=x.dtype)
    for part in x:
        total += part.exp()
    return total


def written_out(x):
    y = torch.empty_like(x)
    torch.add(x, x, alpha=2, out=y)
    torch.exp(y, out=y)
    return y


def scattered(x):
    y = torch.zeros_like(x)
    y.scatter_(1, torch.tensor([[0], [1], [2], [3]]), x[:, :1].exp())
    y.index_add_(0, torch.tensor([0, 0]), x[:2])
    y.index_put_((torch.tensor([3, 3]),), x[0], accumulate=True)
    return y


def a_constant_is_filled(x):
    y = torch.zeros(4, 6, dtype=x.dtype)
    y[:] = x
    y[0, 0] = 7
    return y


def counted(x):
    n = torch.zeros(6, dtype=torch.int64)
    n += (x > 0).sum(0)
    n[0] = 9
    return n, x * n


def resized(x):
    y = x.exp()
    return y.unsqueeze_(0).squeeze_(0).t_().contiguous()


def swapped_storage(x):
    y = x.exp()
    y.data = (x * 2).data
    return y + 0


PROGRAMS = [
    in_place, row, view_of_view, transposed, base_after_view, sibling_views, flattened, strided, masked, swapped,
    detached, unbound, accumulated, written_out, scattered, a_constant_is_filled, counted, resized,
]  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_as_in_double_precision(program):
    told, want = reference(program, X), doubled(program, X)
    assert not told.tape.unsupported
    for output, expected, real in zip(told.outputs, want, told.real, strict=True):
        np.testing.assert_allclose(output.value, expected, rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(output.value, real, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_rounding_is_within_the_floor(program):
    """A floor that misses what was written in place would call the source's own float32 run wrong."""
    told = reference(program, X)
    for output, real in zip(told.outputs, told.real, strict=True):
        assert compare_arithmetic(output, real).score < 8


def test_noise_reaches_a_view_that_was_made_before():
    def program(x):
        y = x.clone()
        v = y[0]
        y.div_(3)
        return v

    assert (reference(program, X).outputs[0].arithmetic_floor > 0).all()


def test_noise_written_through_a_view_reaches_the_base_and_nothing_else():
    def program(x):
        y = x.clone()
        y.view(-1)[::2].sigmoid_()
        return y

    floor = reference(program, X).outputs[0].arithmetic_floor.ravel()
    assert (floor[::2] > 0).all()
    assert not floor[1::2].any()


def test_a_decision_of_rounding_written_into_integers_is_tainted():
    def program(x):
        n = torch.zeros(2, dtype=torch.int64)
        n += (x / 3 > 1 / 3).long()
        return n

    told = reference(program, torch.tensor([1.0, 5.0]))
    assert told.outputs[0].unstable.tolist() == [True, False]


class _WritesItsInput(nn.Module):
    def forward(self, x):
        x.add_(1)
        x[0].mul_(2)
        return x


def test_inputs_that_the_model_writes_are_fresh_in_every_run():
    source = eager(_WritesItsInput(), X)
    inputs = input_set(X.clone())
    kept = inputs.arrays[0].copy()
    first, second = (source.reference(inputs, 0, SCREEN) for _ in range(2))
    plain = [source.real(inputs, fresh_random=False)[0] for _ in range(2)]
    assert np.array_equal(inputs.arrays[0], kept)
    assert np.array_equal(first.outputs[0].value, second.outputs[0].value)
    assert np.array_equal(plain[0], plain[1])
    np.testing.assert_allclose(first.outputs[0].value, doubled(_WritesItsInput(), X.clone())[0], rtol=1e-14)


def test_a_parameter_that_is_written_starts_afresh():
    class Writes(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(torch.ones(6))

        def forward(self, x):
            self.w.mul_(2)
            return x * self.w

    source = eager(Writes(), X)
    values = [source.reference(input_set(X), 0, SCREEN).outputs[0].value for _ in range(3)]
    assert np.array_equal(values[0], 2 * X.double().numpy())
    assert np.array_equal(values[0], values[1])
    assert np.array_equal(values[0], values[2])


def test_values_replaced_behind_the_tape_are_not_believed():
    """`tensor.data = ...` bypasses dispatch: where run and companion drift apart, nothing can be compared."""
    told = reference(swapped_storage, X)
    given_up = told.tape.undecidable or told.outputs[0].unstable.all()
    assert given_up or np.allclose(told.outputs[0].value, told.real[0], rtol=1e-5)
