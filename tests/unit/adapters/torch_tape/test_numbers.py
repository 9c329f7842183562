"""What the program says about numbers is kept: literals in their type, the range of the type, numbers taken out."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn import functional

from tests.unit.adapters.torch_tape.running import normal, reference, value

X = normal(3, 4)
WIDE = X.double().numpy()
HALF = X.half()


def f32(number: float) -> float:
    return float(np.float32(number))


# ---------------------------------------------------------------------- literals

LITERALS = {
    "mul": (lambda x: x * 0.7, WIDE * f32(0.7)),
    "add": (lambda x: x + 0.1, WIDE + f32(0.1)),
    "rsub": (lambda x: 0.3 - x, f32(0.3) - WIDE),
    "div": (lambda x: x / 0.7, WIDE / f32(0.7)),
    "in place": (lambda x: x.clone().mul_(0.7), WIDE * f32(0.7)),
    "clamp": (lambda x: x.clamp(min=0.1), np.maximum(WIDE, f32(0.1))),
    "full": (lambda x: x + torch.full_like(x, 0.1), WIDE + f32(0.1)),
    "tensor": (lambda x: x * torch.tensor(0.7), WIDE * f32(0.7)),
    "leaky": (lambda x: functional.leaky_relu(x, 0.02), np.where(WIDE > 0, WIDE, WIDE * f32(0.02))),
    # Arguments equal to the schema's defaults do not reach a dispatch mode, and are literals all the same.
    "leaky, by default": (lambda x: functional.leaky_relu(x), np.where(WIDE > 0, WIDE, WIDE * f32(0.01))),
    "rrelu, by default": (
        lambda x: functional.rrelu(x),
        np.where(WIDE > 0, WIDE, WIDE * f32((1 / 8 + 1 / 3) / 2)),
    ),
    "masked": (lambda x: x.masked_fill(x > 0, 0.7), np.where(WIDE > 0, f32(0.7), WIDE)),
    "where": (lambda x: torch.where(x > 0, x, 0.1), np.where(WIDE > 0, WIDE, f32(0.1))),
    "alpha": (lambda x: torch.add(x, x, alpha=0.7), WIDE + WIDE * f32(0.7)),
    "finfo": (lambda x: x + torch.finfo(x.dtype).eps, WIDE + 2.0**-23),
    "integer": (lambda x: x * 3, WIDE * 3),
    "exact": (lambda x: x * 0.5, WIDE * 0.5),
}


@pytest.mark.parametrize("name", LITERALS)
def test_a_literal_is_what_its_type_holds(name):
    program, expected = LITERALS[name]
    np.testing.assert_allclose(value(program, X), expected, rtol=1e-15, atol=0)


def test_literals_are_remembered_as_they_were_used():
    literals = reference(lambda x: (x * 0.7 + 0.1) / 4.0, X).tape.literals
    assert {f32(0.7), f32(0.1), 4.0} <= literals
    assert 0.7 not in literals


def test_a_source_in_double_precision_keeps_its_literals():
    assert np.array_equal(value(lambda x: x * 0.7, X.double()), WIDE * 0.7)


def test_a_literal_beyond_the_type_is_infinite():
    assert np.isinf(value(lambda x: x.abs() + 1e300, X)).all()


# ---------------------------------------------------------------------- numbers taken out


def test_item_is_the_number_in_float64():
    np.testing.assert_allclose(
        value(lambda x: x * x.exp().sum().item(), X), WIDE * np.exp(WIDE).sum(), rtol=1e-14, atol=0
    )


def test_a_branch_on_a_number_follows_the_real_run():
    told = reference(lambda x: x + 1 if x.sum().item() > 0 else x - 1, X)
    assert np.array_equal(told.outputs[0].value, WIDE + (1 if WIDE.sum() > 0 else -1))
    assert not told.tape.undecidable


def test_a_branch_that_rounding_takes_is_undecidable():
    told = reference(lambda x: x + 1 if (x[0] / 3 * 3 > 1).item() else x - 1, torch.ones(1))
    assert told.tape.undecidable
    assert told.outputs[0].unstable.all()


def test_a_branch_far_from_its_threshold_is_decided():
    assert not reference(lambda x: x + 1 if (x[0] / 3 > 2).item() else x, torch.ones(1)).tape.undecidable


def test_an_integer_taken_out_is_an_index():
    told = reference(lambda x: x[int(x[:, 0].argmax())], X)
    assert np.array_equal(told.outputs[0].value, WIDE[WIDE[:, 0].argmax()])


def test_python_numbers_as_outputs_are_exact():
    told = reference(lambda x: (x, x.shape[0], 0.5, True), X)
    assert [o.value.item() for o in told.outputs[1:]] == [3, 0.5, True]
    assert all(not o.arithmetic_floor.any() for o in told.outputs[1:])


# ---------------------------------------------------------------------- range of the type

RANGE = {
    "exp(100)": (lambda x: x.exp(), [100.0], [np.inf]),
    "exp(-200)": (lambda x: x.exp(), [-200.0], [0.0]),
    "square": (lambda x: x * x, [1e30, -1e-30], [np.inf, 0.0]),
    "negative": (lambda x: -x.exp(), [100.0], [-np.inf]),
    "overflow on the way": (lambda x: x * x / x, [1e30], [np.inf]),
    "underflow on the way": (lambda x: x * x / x, [1e-30], [0.0]),
    "infinity less infinity": (lambda x: x * x - x * x, [1e30], [np.nan]),
    "sum": (lambda x: x.sum(), [3e38, 3e38], np.inf),
    "softmax is safe": (lambda x: x.softmax(0), [1e4, 0.0], [1.0, 0.0]),
    "logsumexp is safe": (lambda x: x.logsumexp(0), [1e4, 0.0], 1e4),
    "reciprocal of a subnormal number": (lambda x: 1 / x, [1e-42], [np.inf]),
    "largest number": (lambda x: x * 1, [np.finfo(np.float32).max], [np.finfo(np.float32).max]),
    "in place": (lambda x: x.clone().exp_(), [100.0], [np.inf]),
    "cast to half": (lambda x: x.half().float(), [7e4, 1e-9], [np.inf, 0.0]),
}


@pytest.mark.parametrize("name", RANGE)
def test_what_the_type_cannot_hold(name):
    program, inputs, expected = RANGE[name]
    np.testing.assert_allclose(value(program, torch.tensor(inputs)), expected, rtol=1e-6)


@pytest.mark.parametrize(("number", "held"), [(65519.0, 65519.0), (65520.0, np.inf), (-65521.0, -np.inf)])
def test_half_precision_ends_where_rounding_says(number, held):
    told = value(lambda x: x.half().float(), torch.tensor([number]))
    np.testing.assert_allclose(told, [held])


def test_bfloat16_has_the_range_of_float32_and_few_digits():
    x = torch.tensor([1e38, 1e-38], dtype=torch.bfloat16)
    told = reference(lambda x: x * x, x).outputs[0]
    assert told.dtype == "bfloat16"
    np.testing.assert_array_equal(told.value, [np.inf, 0.0])


def test_nan_stays_where_it_is():
    told = value(lambda x: x * 2 + 1, torch.tensor([np.nan, 1.0, np.inf]))
    np.testing.assert_array_equal(told, [np.nan, 3.0, np.inf])


def test_an_element_at_the_edge_of_the_range_is_not_compared():
    edge = float(np.log(np.finfo(np.float32).max))
    told = reference(lambda x: (x / 3 * 3).exp(), torch.tensor([edge, 1.0])).outputs[0]
    assert told.unstable.tolist() == [True, False]
