"""The tape and `module.double()` agree wherever the program says nothing about types."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from tests.unit.adapters.torch_tape.running import doubled, filled, normal, reference

X = normal(2, 6)
SEQUENCE = normal(2, 5, 8)
IMAGE = normal(2, 4, 8, 8)
IDS = torch.tensor([[1, 4, 2], [0, 3, 3]])
EPS = 2.0**-10

MODULES = {
    "Linear": (nn.Linear(6, 3), X),
    "Linear without bias": (nn.Linear(6, 3, bias=False), X),
    "Bilinear": (nn.Bilinear(6, 6, 2), X, normal(2, 6, seed=1)),
    "Conv1d": (nn.Conv1d(5, 4, 3, padding=1), SEQUENCE),
    "Conv2d": (nn.Conv2d(4, 6, 3, stride=2, groups=2), IMAGE),
    "Conv2d dilated": (nn.Conv2d(4, 3, 3, dilation=2, padding=1, padding_mode="reflect"), IMAGE),
    "ConvTranspose2d": (nn.ConvTranspose2d(4, 2, 3, stride=2), IMAGE),
    "BatchNorm2d": (nn.BatchNorm2d(4, eps=EPS), IMAGE),
    "LayerNorm": (nn.LayerNorm(8, eps=EPS), SEQUENCE),
    "GroupNorm": (nn.GroupNorm(2, 4, eps=EPS), IMAGE),
    "InstanceNorm2d": (nn.InstanceNorm2d(4, eps=EPS, affine=True), IMAGE),
    "RMSNorm": (nn.RMSNorm(8, eps=EPS), SEQUENCE),
    "Embedding": (nn.Embedding(5, 4), IDS),
    "EmbeddingBag": (nn.EmbeddingBag(5, 4, mode="sum"), IDS),
    "LSTM": (nn.LSTM(8, 4, batch_first=True, bidirectional=True), SEQUENCE),
    "GRU": (nn.GRU(8, 4, num_layers=2), SEQUENCE),
    "RNN": (nn.RNN(8, 4), SEQUENCE),
    "MultiheadAttention": (nn.MultiheadAttention(8, 2, batch_first=True), SEQUENCE, SEQUENCE, SEQUENCE),
    "TransformerEncoderLayer": (nn.TransformerEncoderLayer(8, 2, 16, layer_norm_eps=EPS, batch_first=True), SEQUENCE),
    "TransformerDecoderLayer": (
        nn.TransformerDecoderLayer(8, 2, 16, layer_norm_eps=EPS, batch_first=True), SEQUENCE, normal(2, 3, 8),
    ),
    "GELU": (nn.GELU(), X),
    "SiLU": (nn.SiLU(), X),
    "Softplus": (nn.Softplus(), X),
    "Softmax": (nn.Softmax(-1), X),
    "LogSoftmax": (nn.LogSoftmax(-1), X),
    "PReLU": (nn.PReLU(6), X),
    "GLU": (nn.GLU(), X),
    "MaxPool2d": (nn.MaxPool2d(2), IMAGE),
    "AvgPool2d": (nn.AvgPool2d(3, padding=1), IMAGE),
    "AdaptiveAvgPool2d": (nn.AdaptiveAvgPool2d(3), IMAGE),
    "Upsample": (nn.Upsample(scale_factor=2, mode="bilinear"), IMAGE),
    "PixelShuffle": (nn.PixelShuffle(2), IMAGE),
    "CosineSimilarity": (nn.CosineSimilarity(eps=EPS), X, normal(2, 6, seed=1)),
    "MSELoss": (nn.MSELoss(), X, normal(2, 6, seed=1)),
    "CrossEntropyLoss": (nn.CrossEntropyLoss(), X, torch.tensor([1, 5])),
}  # fmt: skip

OPERATORS = {
    "matmul": (lambda x: x @ x.mT, SEQUENCE),
    "einsum": (lambda x: torch.einsum("bij,bkj->bik", x, x), SEQUENCE),
    # A head of 16: the plain form of attention scales by 16 ** -0.25, which is exact.
    "attention": (lambda x: functional.scaled_dot_product_attention(x, x, x, is_causal=True), normal(2, 5, 16)),
    "cumsum": (lambda x: x.cumsum(1), SEQUENCE),
    "cumprod": (lambda x: x.cumprod(-1), X),
    "logsumexp": (lambda x: x.logsumexp(1), X),
    "std and mean": (lambda x: torch.std_mean(x, dim=1), X),
    "var": (lambda x: x.var(dim=0, unbiased=False), X),
    "norm": (lambda x: torch.linalg.vector_norm(x, dim=1), X),
    "det": (lambda x: torch.linalg.det(x @ x.mT), SEQUENCE),
    "solve": (lambda x: torch.linalg.solve(x @ x.mT + 8 * torch.eye(5, dtype=x.dtype), x), SEQUENCE),
    "trigonometry": (lambda x: x.sin() + x.cos() * x.atan(), X),
    "erf": (lambda x: torch.erf(x) + torch.erfc(x), X),
    "power": (lambda x: x.abs() ** x, X),
    "where": (lambda x: torch.where(x > 0, x.exp(), x), X),
    "scatter": (lambda x: torch.zeros_like(x).scatter_add(1, torch.tensor([[0, 0, 1], [2, 2, 2]]), x), X),
    "index_add": (lambda x: torch.ones_like(x).index_add(0, torch.tensor([1, 1]), x), X),
    "gather": (lambda x: x.gather(1, torch.tensor([[0, 3], [5, 5]])), X),
    "topk": (lambda x: x.topk(3), X),
    "sort": (lambda x: x.sort(descending=True), X),
    "argmax": (lambda x: x.argmax(1), X),
    "one hot": (lambda x: functional.one_hot(x.argmax(1), 6) * x, X),
    "grid sample": (lambda x, g: functional.grid_sample(x, g, align_corners=True), IMAGE, normal(2, 3, 3, 2).tanh()),
    "complex": (lambda x: torch.view_as_real(torch.view_as_complex(x.reshape(2, 3, 2)) ** 2), X),
    "fourier": (lambda x: torch.fft.rfft(x).abs(), X),
    "dictionary": (lambda x: {"a": x.tanh(), "b": [x.sum(), 3, 0.5]}, X),
    "nothing from the input": (lambda x: torch.ones(2, 3), X),
    "integers": (lambda i: (i * 3 - 1) // 2, IDS),
    "half": (lambda x: x.half().float() * 2, X),
}


def _agree(program, *inputs):
    told = reference(program, *inputs)
    want = doubled(program, *inputs)
    assert len(told.outputs) == len(want)
    assert not told.tape.unsupported
    for output, expected in zip(told.outputs, want, strict=True):
        assert output.value.shape == expected.shape
        np.testing.assert_allclose(output.value, expected, rtol=1e-12, atol=1e-12)
    return told


@pytest.mark.parametrize("name", MODULES)
def test_modules(name):
    module, *inputs = MODULES[name]
    told = _agree(filled(module), *inputs)
    for output, real in zip(told.outputs, told.real, strict=True):
        assert output.dtype == real.dtype.name
        np.testing.assert_allclose(output.value, real, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("name", [n for n in OPERATORS if n != "half"])
def test_operators(name):
    _agree(*OPERATORS[name])


def test_a_narrow_cast_is_a_type_of_the_program_and_carries_its_noise():
    """float16 is held in float64 as well: its rounding is noise, and its name is a type of the source."""
    told = reference(*OPERATORS["half"])
    assert told.tape.types >= {"float16", "float32"}
    np.testing.assert_allclose(told.outputs[0].value, 2 * X.double().numpy(), rtol=1e-12)
    assert (told.outputs[0].arithmetic_floor > 1e-5).any()


def test_real_outputs_are_those_of_the_plain_run():
    module = filled(nn.Linear(6, 3))
    with torch.no_grad():
        assert np.array_equal(reference(module, X).real[0], module(X).numpy())


def test_names_of_outputs_are_their_paths():
    told = reference(lambda x: {"a": x, "b": [x, (x, x)]}, X)
    assert len({o.name for o in told.outputs}) == 4
    assert told.outputs[0].name == "a"
    assert all(o.name.startswith("b") for o in told.outputs[1:])


def test_a_single_output_has_a_name():
    assert reference(lambda x: x, X).outputs[0].name == "output"
