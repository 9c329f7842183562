"""Modules in memory, and the identity of their content."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch
from torch import nn

from trueport.adapters.sources import subject_from_object
from trueport.adapters.sources.fingerprint import sha256_of_module
from trueport.core.errors import UsageError


def test_object():
    model = nn.Linear(3, 2)
    x = torch.ones(1, 3)
    subject = subject_from_object(model, (x,), dynamic_shapes=({0: "b"},), export_options={"a": 1}, name="mine")
    assert subject.model is model
    assert model.training
    assert (subject.name, subject.origin, subject.export_options) == ("mine", "<object>", {"a": 1})
    assert subject_from_object(model, (), {"input": x}).name == "Linear"


@pytest.mark.parametrize(
    ("model", "args", "kwargs", "message"),
    [
        (3, (), None, "to be an nn.Module instance, got 3"),
        (nn.Linear, (), None, "got the class torch.nn.modules.linear.Linear"),
        (nn.Tanh(), torch.ones(2), None, r"got float32\[2\]; write \(x,\)"),
        (nn.Tanh(), (), [1], "kwargs to be a mapping"),
        (nn.Tanh(), (), None, "missing a required argument: 'input'"),
    ],
)
def test_wrong_objects(model, args, kwargs, message):
    with pytest.raises(UsageError, match=message):
        subject_from_object(model, args, kwargs)


def test_fingerprint_sees_every_change():
    def net():
        torch.manual_seed(0)
        return nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))

    base = sha256_of_module(net())
    assert base == sha256_of_module(net())
    changed = []
    for change in (
        lambda m: m[0].weight.data.add_(1e-3),
        lambda m: m[1].running_mean.add_(1e-3),
        lambda m: m.half(),
        lambda m: setattr(m[0], "weight", nn.Parameter(m[0].weight.reshape(1, 4))),
        lambda m: m.register_buffer("extra", torch.ones(1), persistent=False),
        lambda m: m.add_module("2", nn.Linear(1, 1)),
    ):
        model = net()
        change(model)
        changed.append(sha256_of_module(model))
    other = type("Other", (nn.Sequential,), {})(*net())
    assert len({base, *changed, sha256_of_module(other)}) == 8


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.complex64, torch.bool, torch.int8, torch.float8_e4m3fn])
def test_fingerprint_of_every_dtype(dtype):
    module = nn.Module()
    module.register_buffer("b", torch.ones(2, 3).to(dtype))
    module.register_buffer("empty", torch.ones(0).to(dtype))
    module.register_buffer("scalar", torch.ones(()).to(dtype))
    module.register_buffer("view", torch.ones(4, 4).to(dtype).T)
    module.register_buffer("meta", torch.ones(2, device="meta").to(dtype))
    assert len(sha256_of_module(module)) == 64


def test_importing_the_package_imports_no_framework():
    program = (
        "import sys, trueport.adapters.sources, trueport.adapters.sources.zoo; "
        "bad = {'torch', 'transformers', 'numpy'} & set(sys.modules); assert not bad, bad"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
