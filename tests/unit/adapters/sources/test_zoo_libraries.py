"""Models of timm and torchvision by name, against small stand-ins for the libraries."""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType, SimpleNamespace

import pytest
import torch
from torch import nn

from trueport.adapters.sources import load_subject
from trueport.core.errors import MissingToolError, SourceError, ToolError, UsageError


class Net(nn.Module):
    def __init__(self, channels: int = 3) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(channels, 4, 3), nn.BatchNorm2d(4), nn.ReLU())
        self.head = nn.Linear(4, 5)

    def forward(self, x):
        return {"out": self.head(self.body(x).mean((2, 3)))}


def installed(monkeypatch, name, **members):
    module = ModuleType(name)
    module.__spec__ = importlib.util.spec_from_loader(name, None)
    module.__dict__.update(members)
    monkeypatch.setitem(sys.modules, name, module)
    return module


def fake_timm(monkeypatch, make=Net):
    asked = []

    def create_model(name, *, pretrained):
        asked.append((name, pretrained))
        return make()

    installed(
        monkeypatch,
        "timm",
        list_models=lambda: ["resnet18", "vit_tiny"],
        get_pretrained_cfg=lambda name, allow_unregistered: SimpleNamespace(input_size=(3, 16, 16)),
        create_model=create_model,
    )
    return asked


def plain(weights=None):
    return Net()


def segmenter(weights=None, weights_backbone="pretrained"):
    assert weights_backbone is None
    return Net()


def detector(weights=None):
    raise AssertionError


plain.__module__ = "torchvision.models.resnet"
segmenter.__module__ = "torchvision.models.segmentation.fcn"
detector.__module__ = "torchvision.models.detection.faster_rcnn"
BUILDERS = {"resnet18": plain, "fcn": segmenter, "faster_rcnn": detector}


def fake_torchvision(monkeypatch):
    transforms = SimpleNamespace(keywords={"crop_size": 24})
    models = SimpleNamespace(
        list_models=lambda: list(BUILDERS),
        get_model_builder=BUILDERS.__getitem__,
        get_model=lambda name, weights, **more: BUILDERS[name](weights=weights, **more),
        get_model_weights=lambda _: SimpleNamespace(DEFAULT=SimpleNamespace(transforms=transforms)),
    )
    installed(monkeypatch, "torchvision", models=models)


def test_timm_by_name(monkeypatch):
    asked = fake_timm(monkeypatch)
    subject = load_subject("zoo:timm/vit_tiny.some_weights", seed=1)
    assert asked == [("vit_tiny.some_weights", False)]
    assert subject.examples[0].args[0].shape == (1, 3, 16, 16)
    (output,) = subject.model(*subject.examples[0].args)
    assert output.shape == (1, 5)
    assert not subject.model.training
    assert subject.sha256 == load_subject("zoo:timm/vit_tiny.some_weights", seed=1).sha256
    assert subject.sha256 != load_subject("zoo:timm/vit_tiny.some_weights", seed=2).sha256


def test_torchvision_by_name(monkeypatch):
    fake_torchvision(monkeypatch)
    for name in ("resnet18", "fcn"):
        subject = load_subject(f"zoo:torchvision/{name}")
        assert subject.examples[0].args[0].shape == (1, 3, 24, 24)
        assert torch.isfinite(subject.model(*subject.examples[0].args)[0]).all()


def test_what_the_libraries_do_not_have(monkeypatch):
    fake_timm(monkeypatch)
    fake_torchvision(monkeypatch)
    with pytest.raises(UsageError, match="timm has no model 'resnt18'; did you mean 'resnet18'"):
        load_subject("zoo:timm/resnt18")
    with pytest.raises(UsageError, match="torchvision has no model 'resnt18'; did you mean 'resnet18'"):
        load_subject("zoo:torchvision/resnt18")
    with pytest.raises(UsageError, match=r"takes a list of images.*write a file model\.py"):
        load_subject("zoo:torchvision/faster_rcnn")
    with pytest.raises(UsageError, match="the zoo has no model 'zoo:tim/x'; did you mean 'zoo:timm/'"):
        load_subject("zoo:tim/x")


def test_a_model_that_cannot_be_built(monkeypatch):
    def fails():
        raise ValueError("no such layer")

    fake_timm(monkeypatch, fails)
    with pytest.raises(SourceError, match="'zoo:timm/resnet18' cannot be built: ValueError: no such layer"):
        load_subject("zoo:timm/resnet18")


@pytest.mark.parametrize("library", ["timm", "torchvision"])
def test_an_absent_library_is_named(monkeypatch, library):
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == library else find(name))
    with pytest.raises(MissingToolError, match=f"pip install {library}"):
        load_subject(f"zoo:{library}/resnet18")


def test_a_library_for_another_torch(monkeypatch, tmp_path):
    (tmp_path / "torchvision.py").write_text("raise RuntimeError('operator torchvision::nms does not exist')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "torchvision", raising=False)
    with pytest.raises(ToolError, match=r"cannot be imported beside torch .*nms does not exist; install the release"):
        load_subject("zoo:torchvision/resnet18")
