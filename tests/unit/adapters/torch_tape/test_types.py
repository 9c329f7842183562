"""Sources in bfloat16, in double precision and in complex numbers: values, floors, literals, known numbers."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from tests.unit.adapters.torch_tape.running import filled, input_set, normal, reference
from trueport.adapters.float64.torch.module import rebuild, to_array, to_tensor
from trueport.adapters.float64.torch.source import TorchSource
from trueport.adapters.sources import subject_from_object
from trueport.core.subject import Example
from trueport.oracle.noise import ALARM, SCREEN
from trueport.oracle.thresholds import THRESHOLDS
from trueport.oracle.units import FLOAT_TYPES

REAL = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
COMPLEX = (torch.complex64, torch.complex128)


def name_of(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def mlp(dtype: torch.dtype) -> nn.Module:
    return filled(nn.Sequential(nn.Linear(8, 16), nn.LayerNorm(16), nn.GELU(), nn.Linear(16, 4))).to(dtype)


def inputs_of(dtype: torch.dtype) -> torch.Tensor:
    if dtype.is_complex:
        return torch.complex(normal(5, 8), normal(5, 8, seed=1)).to(dtype)
    return normal(5, 8, dtype=dtype)


@pytest.mark.parametrize("dtype", REAL + COMPLEX)
def test_arrays_hold_the_tensors_own_numbers(dtype):
    tensor = inputs_of(dtype)
    array = to_array(tensor)
    assert array.dtype.name == name_of(dtype)
    again = to_tensor(array, tensor)
    assert again.dtype is dtype
    assert torch.equal(again, tensor)
    again.zero_()
    assert torch.equal(tensor, inputs_of(dtype))
    assert np.array_equal(array, to_array(tensor))


def test_views_of_bfloat16_are_arrays_as_well():
    tensor = inputs_of(torch.bfloat16)
    assert np.array_equal(to_array(tensor.T).astype(float), tensor.T.double().numpy())
    args, _ = rebuild(Example((tensor,)), (to_array(tensor),))
    assert torch.equal(args[0], tensor)


@pytest.mark.parametrize("dtype", REAL)
def test_the_value_is_that_of_double_precision(dtype):
    module, x = mlp(dtype), inputs_of(dtype)
    output = reference(module, x).outputs[0]
    with torch.no_grad():
        wide = mlp(dtype).double()(x.double()).numpy()
    assert output.dtype == name_of(dtype)
    # The epsilon of the norm is a literal, which narrow types hold as float32.
    np.testing.assert_allclose(output.value, wide, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("dtype", REAL)
def test_floors_are_as_large_as_rounding_in_that_type(dtype):
    module, x = mlp(dtype), inputs_of(dtype)
    found = reference(module, x, draws=ALARM)
    output, unit = found.outputs[0], FLOAT_TYPES[name_of(dtype)].unit_roundoff
    scale = float(np.abs(output.value).max())
    assert 0.05 * unit * scale < np.median(output.arithmetic_floor) < 20 * unit * scale
    assert np.all(output.meaning_floor > 0)
    # What underflows in the real type may differ between float64 evaluations.
    assert np.median(output.meaning_floor) < 1e4 * 2.0**-53 * scale + 8 * FLOAT_TYPES[name_of(dtype)].underflow
    assert not output.unstable.any()
    off = np.abs(found.real[0].astype(np.float64) - output.value)
    assert np.all(off <= THRESHOLDS.arithmetic * output.arithmetic_floor)
    assert found.real[0].dtype.name == name_of(dtype)


@pytest.mark.parametrize("dtype", REAL)
def test_a_correctly_rounded_sum_is_off_by_its_rounding(dtype):
    x, unit = inputs_of(dtype), FLOAT_TYPES[name_of(dtype)].unit_roundoff
    output = reference(lambda a: a + 0.3, x, draws=ALARM).outputs[0]
    largest = np.abs(output.value) * unit + 1e-30
    assert np.all(output.arithmetic_floor < 4 * largest.max())
    assert output.arithmetic_floor.max() > 0.1 * unit * np.abs(output.value).max()


def test_double_precision_sees_what_single_precision_hides():
    """A candidate that computes in float32 is far beyond the floor of a source in float64."""
    module, x = mlp(torch.float64), inputs_of(torch.float64)
    output = reference(module, x).outputs[0]
    with torch.no_grad():
        narrow = mlp(torch.float64).float()(x.float()).double().numpy()
    off = np.abs(narrow - output.value)
    assert np.median(off / output.arithmetic_floor) > 100 * THRESHOLDS.arithmetic


def test_literals_of_double_precision_stay_as_they_are():
    found = reference(lambda a: a * 0.7 + torch.full_like(a, 0.1), inputs_of(torch.float64))
    np.testing.assert_array_equal(found.outputs[0].value, inputs_of(torch.float64).numpy() * 0.7 + np.full((5, 8), 0.1))
    assert 0.7 in found.tape.literals


def test_inputs_are_not_written_through_their_companions():
    x = inputs_of(torch.float64)
    kept = x.clone()
    reference(lambda a: a.add_(1.0), x)
    assert torch.equal(x, kept)


@pytest.mark.parametrize("dtype", COMPLEX)
def test_complex_values_have_floors_of_their_components(dtype):
    x, unit = inputs_of(dtype), FLOAT_TYPES[name_of(dtype)].unit_roundoff
    found = reference(lambda a: (a * a.conj() + a.exp()) @ a.T, x, draws=ALARM)
    output = found.outputs[0]
    wide = x.to(torch.complex128)
    expected = ((wide * wide.conj() + wide.exp()) @ wide.T).numpy()
    np.testing.assert_allclose(output.value, expected, rtol=1e-12)
    assert output.dtype == name_of(dtype)
    scale = np.abs(expected).max()
    assert 0.01 * unit * scale < output.arithmetic_floor.max() < 100 * unit * scale
    off = np.abs(found.real[0].astype(np.complex128) - output.value)
    assert np.all(off <= THRESHOLDS.arithmetic * output.arithmetic_floor)
    assert not output.unstable.any()


@pytest.mark.parametrize("dtype", COMPLEX)
def test_complex_and_back(dtype):
    x = inputs_of(dtype)
    output = reference(lambda a: torch.view_as_real(a).sum(-1).abs(), x).outputs[0]
    wide = torch.view_as_real(x.to(torch.complex128)).sum(-1).abs().numpy()
    np.testing.assert_allclose(output.value, wide, rtol=1e-12)


def test_a_cast_between_types_is_no_more_than_its_rounding():
    x = inputs_of(torch.float64)
    found = reference(lambda a: a.to(torch.bfloat16).to(torch.float64) * 1.0, x, draws=ALARM)
    unit = FLOAT_TYPES["bfloat16"].unit_roundoff
    output = found.outputs[0]
    assert output.arithmetic_floor.max() > 0.1 * unit * np.abs(output.value).max()
    assert {"float64", "bfloat16"} <= found.tape.types


class Rotation(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.turn = nn.Parameter(inputs_of(torch.complex64))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.turn


def test_the_source_holds_its_numbers_in_every_type():
    for dtype in REAL:
        module = mlp(dtype)
        source = TorchSource(subject_from_object(module, (inputs_of(dtype),)), 0)
        known = source.known_numbers([source.reference(input_set(inputs_of(dtype)), 0, SCREEN)])
        held = to_array(module[0].weight)
        assert not known.computed(held).any()
        assert not known.computed(np.ascontiguousarray(held.T)).any()
        assert not known.is_foreign(name_of(dtype))
        assert known.is_foreign("float16") == (dtype is not torch.float16)


def test_complex_parameters_are_known_as_pairs():
    module = Rotation()
    x = inputs_of(torch.complex64)
    source = TorchSource(subject_from_object(module, (x,)), 0)
    known = source.known_numbers([source.reference(input_set(x), 0, SCREEN)])
    pairs = torch.view_as_real(module.turn.detach()).numpy()
    assert not known.computed(pairs).any()
    assert not known.computed(np.ascontiguousarray(pairs[..., 1])).any()
    assert known.computed(pairs * np.float32(1.0000003)).any()
