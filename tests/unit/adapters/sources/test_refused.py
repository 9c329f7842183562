"""Pickles, TorchScript archives and weights."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
import torch
from torch import nn

from trueport.adapters.sources import load_subject
from trueport.core.errors import SourceError, UsageError

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
SHAPES = {"input": [1, 3]}


@pytest.fixture
def whole(tmp_path):
    torch.save(nn.Linear(3, 2), tmp_path / "net.pt")
    return str(tmp_path / "net.pt")


@pytest.fixture
def script(tmp_path):
    torch.jit.script(nn.Linear(3, 2)).save(str(tmp_path / "script.pt"))
    return str(tmp_path / "script.pt")


def test_pickle_is_refused_with_the_reason(whole):
    with pytest.raises(UsageError, match=r"is a pickle; loading it can run any code.*model\.py:NAME.*--trust-pickle"):
        load_subject(whole)


def test_torchscript_is_refused_with_the_reason(script):
    with pytest.raises(UsageError, match="TorchScript archive, whose code would be run"):
        load_subject(script)


def test_nothing_is_unpickled_without_the_word(tmp_path):
    class Trap:
        def __reduce__(self):
            return (Path.touch, (tmp_path / "sprung",))

    for suffix in (".pkl", ".pth", ".bin", ".ckpt"):
        (tmp_path / f"x{suffix}").write_bytes(pickle.dumps(Trap()))
        with pytest.raises(UsageError, match="is a pickle"):
            load_subject(str(tmp_path / f"x{suffix}"))
    assert not (tmp_path / "sprung").exists()


def test_trusted_module(whole, script):
    assert load_subject(whole, trust_pickle=True, input_shapes=SHAPES).model.out_features == 2
    subject = load_subject(script, trust_pickle=True, input_shapes=SHAPES)
    assert isinstance(subject.model, torch.jit.ScriptModule)
    assert subject.examples[0].args[0].shape == (1, 3)
    with pytest.raises(UsageError, match="without example inputs"):
        load_subject(whole, trust_pickle=True)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (nn.Linear(3, 2).state_dict(), "state dict of 2 entries and no module; write a file model.py"),
        ({"model": {"w": torch.ones(1)}, "epoch": 3}, "checkpoint with the keys model, epoch"),
        ([1, 2], r"to hold an nn.Module, got \[1, 2\]"),
    ],
)
def test_trusted_files_without_a_module(tmp_path, value, message):
    torch.save(value, tmp_path / "x.pth")
    with pytest.raises(UsageError, match=message):
        load_subject(str(tmp_path / "x.pth"), trust_pickle=True)


def test_damaged_trusted_file(tmp_path):
    (tmp_path / "x.pt").write_bytes(b"nonsense")
    with pytest.raises(SourceError, match="cannot be loaded"):
        load_subject(str(tmp_path / "x.pt"), trust_pickle=True)


def test_safetensors_get_advice(tmp_path):
    (tmp_path / "x.safetensors").write_bytes(b"")
    with pytest.raises(UsageError, match="holds weights and no model"):
        load_subject(str(tmp_path / "x.safetensors"), trust_pickle=True)


def test_safetensors_beside_a_configuration_name_the_folder(tmp_path):
    (tmp_path / "model.safetensors").write_bytes(b"")
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(UsageError, match="so check the folder"):
        load_subject(str(tmp_path / "model.safetensors"))


def test_missing_file():
    with pytest.raises(UsageError, match="does not exist"):
        load_subject("nowhere.pt")
