"""Noise has the size of the type, is zero for exact programs, and comes from the tape's own generator."""

from __future__ import annotations

import random

import ml_dtypes
import numpy as np
import pytest
import torch
from torch import nn

from tests.unit.adapters.torch_tape.running import eager, filled, input_set, normal, reference
from trueport.oracle.compare import compare_arithmetic
from trueport.oracle.noise import ALARM, SCREEN, Draws

X = normal(4, 6)
IMAGE = normal(1, 2, 6, 6)

EXACT = {
    "power of two": (lambda x: x * 4 - 0, X),
    "relu": (lambda x: x.relu(), X),
    "gather": (lambda x: x[[3, 1]], X),
    "layout": (lambda x: torch.cat([x.T.reshape(2, 12), x.view(2, 12)]).flip(0), X),
    "pooling": (lambda x: nn.functional.max_pool2d(x, 2), IMAGE),
    "choice": (lambda x: torch.where(x > 0.123, x, -x), X),
    "clamp": (lambda x: x.clamp(-1, 1).abs(), X),
    "sort": (lambda x: x.sort(dim=1).values, X),
    "padding": (lambda x: nn.functional.pad(x, (1, 2)), X),
    "embedding": (lambda i: torch.arange(12.0).reshape(6, 2)[i], torch.tensor([1, 5])),
    "integers in floats": (lambda x: x.round() * 3 + x.round(), X),
    "integers": (lambda i: i * 7 - 3, torch.tensor([1, 5])),
    "comparison": (lambda x: x > 0.1, X),
    "identity matrix": (lambda x: x[:, :1] * 1.0, X),
}


@pytest.mark.parametrize("name", EXACT)
def test_exact_programs_have_no_noise(name):
    program, *inputs = EXACT[name]
    for output in reference(program, *inputs).outputs:
        assert not output.arithmetic_floor.any()
        assert not output.meaning_floor.any()


INEXACT = {
    "mul": lambda x: x * 1.1,
    "exp": lambda x: x.exp(),
    "sum": lambda x: x.sum(1),
    "matmul": lambda x: x @ x.T,
    "div": lambda x: x / 3,
    "softmax": lambda x: x.softmax(1),
    "in place": lambda x: x.clone().sigmoid_(),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", INEXACT)
def test_noise_has_the_size_of_the_type(name, dtype):
    unit = torch.finfo(dtype).eps / 2
    output = reference(INEXACT[name], X.to(dtype), draws=ALARM).outputs[0]
    relative = np.median(output.arithmetic_floor / np.abs(output.value))
    assert unit / 20 < relative < 30 * unit


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_meaning_noise_has_the_size_of_float64_whatever_the_type(dtype):
    relative = []
    for program in INEXACT.values():
        output = reference(program, X.to(dtype), draws=ALARM).outputs[0]
        relative.append(np.median(output.meaning_floor / np.abs(output.value)))
    assert min(relative) > 2.0**-56
    assert max(relative) < 2.0**-44


def test_meaning_noise_of_float16_is_a_few_times_its_underflow():
    """Two programs may differ in which intermediate numbers underflow: 3e-8 is the price of float16's small range."""
    for program in INEXACT.values():
        floor = reference(program, X.half(), draws=ALARM).outputs[0].meaning_floor
        assert 1e-8 < np.median(floor) < 1e-6


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_the_source_s_own_run_is_within_its_floor(dtype):
    for program in INEXACT.values():
        told = reference(program, X.to(dtype), draws=ALARM)
        output = told.outputs[0]
        real = told.real[0] if dtype is not torch.bfloat16 else told.real[0].astype(ml_dtypes.bfloat16)
        assert compare_arithmetic(output, real).score < 8


def test_float16_linear():
    module = filled(nn.Linear(6, 3)).half()
    told = reference(module, X.half())
    output = told.outputs[0]
    assert (output.dtype, output.value.dtype.name) == ("float16", "float64")
    exact = X.half().double() @ module.weight.double().T + module.bias.double()
    np.testing.assert_allclose(output.value, exact.detach().numpy(), rtol=1e-13)
    assert 2.0**-14 < np.median(output.arithmetic_floor) < 2.0**-8


def test_conditioning_amplifies():
    def cancels(x):
        return (x + 1000) - 1000

    plain, amplified = (reference(p, X).outputs[0].arithmetic_floor for p in (lambda x: x * 1.1, cancels))
    assert np.median(amplified) > 100 * np.median(plain)


def test_constants_carry_the_noise_of_their_type_in_both_lanes():
    """A converter may fold them in float32, so they may differ by that much in meaning; data may not."""
    constant = reference(lambda x: x * torch.tensor([0.1, 0.2, 0.3, 0.4, 0.5, 0.6]).exp(), X).outputs[0]
    data = reference(lambda x: x.exp() * 2, X).outputs[0]
    assert np.median(constant.meaning_floor / np.abs(constant.value)) > 2.0**-28
    assert np.median(data.meaning_floor / np.abs(data.value)) < 2.0**-44


def test_no_draws_no_noise():
    told = reference(lambda x: x.exp(), X, draws=Draws(0, 0)).outputs[0]
    assert not told.arithmetic_floor.any()
    assert told.draws == 0


def test_the_value_does_not_depend_on_the_draws():
    values = [reference(lambda x: x.softmax(1), X, draws=d).outputs[0].value for d in (Draws(0, 0), SCREEN, ALARM)]
    assert np.array_equal(values[0], values[1])
    assert np.array_equal(values[0], values[2])


def test_the_seed_decides_the_noise():
    first, again, other = (reference(lambda x: x.exp(), X, seed=s).outputs[0].arithmetic_floor for s in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_an_operator_without_float64_is_named_and_stood_in_for():
    library = torch.library.Library("trueport_tests", "DEF")
    library.define("narrow(Tensor x) -> Tensor")

    def narrow(x):
        if x.dtype is torch.float64:
            raise NotImplementedError("not in float64")
        return x * 2

    library.impl("narrow", narrow, "CompositeExplicitAutograd")
    told = reference(lambda x: torch.ops.trueport_tests.narrow(x.exp()), X)
    assert list(told.tape.unsupported) == ["trueport_tests.narrow.default"]
    np.testing.assert_allclose(told.outputs[0].value, 2 * X.double().exp().numpy(), rtol=1e-6)
    assert (told.outputs[0].meaning_floor > 0).all()
    library._destroy()


# ---------------------------------------------------------------------- random numbers


def _random(x):
    return x * torch.rand_like(x)


@pytest.mark.parametrize(
    "program", [_random, nn.Dropout(0.5), lambda x: torch.bernoulli(x.sigmoid()), lambda x: x + torch.randn(6)]
)
def test_random_operators_are_recorded(program):
    assert reference(program, X).tape.random


def test_dropout_that_does_nothing_is_not_random():
    assert not reference(nn.Dropout(0.5).eval(), X).tape.random


def test_no_global_random_state_is_disturbed():
    states = (torch.get_rng_state(), random.getstate(), np.random.get_state()[1].copy())
    source = eager(_random, X)
    source.reference(input_set(X), 0, SCREEN)
    source.real(input_set(X), fresh_random=True)
    source.run(input_set(X))
    assert torch.equal(torch.get_rng_state(), states[0])
    assert random.getstate() == states[1]
    assert np.array_equal(np.random.get_state()[1], states[2])


def test_fresh_random_numbers_differ_and_others_do_not():
    source = eager(_random, X)
    first = source.real(input_set(X), fresh_random=False)[0]
    assert np.array_equal(first, source.real(input_set(X), fresh_random=False)[0])
    assert not np.array_equal(first, source.real(input_set(X), fresh_random=True)[0])
