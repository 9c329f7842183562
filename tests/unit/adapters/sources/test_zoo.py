"""The zoo: names, determinism, and activations that keep their scale."""

from __future__ import annotations

import importlib.util
import time

import pytest
import torch

from trueport.adapters.sources import load_subject
from trueport.adapters.sources.zoo import list_zoo
from trueport.adapters.sources.zoo.architectures import ARCHITECTURES
from trueport.core.errors import MissingToolError, UsageError

pytestmark = pytest.mark.filterwarnings("ignore")

REQUIRED = ("bert", "gpt2", "t5", "vit", "llama", "whisper", "swin", "mamba")
# These modules return probabilities, counts or sums by design; their neighbours bring the scale back.
BY_DESIGN = (
    "Dropout",
    "Softmax",
    "Attention",
    "Fourier",
    "_WeightNorm",
    "ParametrizationList",
    "Scaler",
    "SiLU",
    "GELU",
)


def test_listing():
    entries = list_zoo()
    assert all(entry.available and not entry.missing and entry.description for entry in entries)
    assert {f"zoo:hf/{name}" for name in REQUIRED} <= {entry.name for entry in entries}
    assert len([e for e in entries if e.name.startswith("zoo:hf/")]) == len(ARCHITECTURES) >= 40
    assert len([e for e in entries if e.name.startswith("zoo:keras/")]) >= 16


def test_unknown_name():
    with pytest.raises(UsageError, match=r"no model 'zoo:hf/brt'; did you mean 'zoo:hf/bert'"):
        load_subject("zoo:hf/brt")
    with pytest.raises(UsageError, match="zoo has no model 'zoo:nobody/x'; its families are: zoo:hf/"):
        load_subject("zoo:nobody/x")


def test_without_transformers(monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "transformers" else find(name))
    entries = [entry for entry in list_zoo() if entry.name.startswith("zoo:hf/")]
    assert not any(entry.available for entry in entries)
    assert "pip install 'trueport[zoo]'" in entries[0].missing
    with pytest.raises(MissingToolError, match=r"pip install 'trueport\[zoo\]'"):
        load_subject("zoo:hf/bert")


def test_weights_depend_on_the_seed_only():
    torch.manual_seed(5)
    state = torch.random.get_rng_state()
    first = load_subject("zoo:hf/bert", seed=1)
    assert torch.equal(state, torch.random.get_rng_state())
    torch.rand(3)
    again, other = load_subject("zoo:hf/bert", seed=1), load_subject("zoo:hf/bert", seed=2)
    assert first.sha256 == again.sha256 != other.sha256
    assert torch.equal(first.examples[0].args[0], again.examples[0].args[0])


def outputs(subject):
    with torch.no_grad():
        return subject.model(*subject.examples[0].args)


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_every_model(name):
    load_subject(f"zoo:hf/{name}")  # imports its module, which is no part of the time below
    started = time.process_time()
    subject = load_subject(f"zoo:hf/{name}")
    assert time.process_time() - started < 3
    assert not subject.model.training
    started = time.process_time()
    first = outputs(subject)
    assert time.process_time() - started < 0.3
    for one, two in zip(first, outputs(subject), strict=True):
        assert torch.equal(one, two)
        assert torch.isfinite(one).all()
        assert 0.1 <= float(one.std()) <= 5


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_activations_keep_their_scale(name):
    subject = load_subject(f"zoo:hf/{name}")
    outside: list[str] = []

    def look(path, module):
        def hook(_module, _inputs, output):
            main = output[0] if isinstance(output, tuple) else output
            if isinstance(main, torch.Tensor) and main.is_floating_point() and main.numel() > 3:
                std = float(main.std())
                if not 0.1 <= std <= 10 and not any(part in type(module).__name__ for part in BY_DESIGN):
                    outside.append(f"{path} ({type(module).__name__}): {std:.3g}")

        return hook

    for path, module in subject.model.named_modules():
        module.register_forward_hook(look(path, module))
    outputs(subject)
    assert not outside


def test_halves_of_generation_are_one_model():
    """A step with the cache of the prompt continues as the prompt with one more token does."""
    for name in ("gpt2", "llama"):
        prompt, step = (load_subject(f"zoo:hf/{name}-{half}").model for half in ("prefill", "decode"))
        ids = torch.arange(3, 13).reshape(1, 10)
        with torch.no_grad():
            whole = prompt(ids, torch.ones_like(ids))
            cached = prompt(ids[:, :9], torch.ones(1, 9, dtype=torch.int64))[1:]
            past = tuple(zip(cached[::2], cached[1::2], strict=True))
            outputs = step(ids[:, 9:], torch.ones_like(ids), past)
        torch.testing.assert_close(outputs[0][:, -1], whole[0][:, -1], rtol=1e-4, atol=1e-5)
        for one, two in zip(outputs[1:], whole[1:], strict=True):
            torch.testing.assert_close(one, two, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", [name for name in ARCHITECTURES if not name.endswith("-decode")])
def test_other_sizes_run(name):
    subject = load_subject(f"zoo:hf/{name}")
    args = []
    for tensor, dims in zip(subject.examples[0].args, subject.dynamic_shapes.values(), strict=True):
        for axis in dims:
            repeats = 3 if axis == 0 else 2
            tensor = torch.cat([tensor] * repeats, dim=axis)
        args.append(tensor)
    with torch.no_grad():
        assert all(torch.isfinite(t).all() for t in subject.model(*args))


@pytest.mark.parametrize("name", REQUIRED)
def test_every_weight_matters(name):
    """A parameter whose change no output shows would hide a fault of the converter in it."""
    subject = load_subject(f"zoo:hf/{name}")
    base = outputs(subject)
    silent = []
    for path, parameter in subject.model.named_parameters():
        kept = parameter.detach().clone()
        with torch.no_grad():
            parameter.add_(0.1 * torch.randn(kept.shape, generator=torch.Generator().manual_seed(0)))
            changed = outputs(subject)
            parameter.copy_(kept)
        if all(torch.allclose(a, b, rtol=0, atol=1e-5) for a, b in zip(base, changed, strict=True)):
            silent.append(path)
    # Softmax does not see what is added to all scores of a row: a key bias does that.
    assert [path for path in silent if not path.endswith(("key.bias", "k_proj.bias"))] == []
