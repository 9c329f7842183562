"""`zoo:torchvision/NAME`: models of torchvision without pretrained weights, on one image of the size that they name."""

from __future__ import annotations

import inspect
from typing import Any

from torch import nn

from trueport.adapters.sources.registry import SourceRequest
from trueport.adapters.sources.wording import choices
from trueport.adapters.sources.zoo.image_models import library, subject_of_model
from trueport.core.errors import UsageError
from trueport.core.subject import Subject

_PREFIX = "zoo:torchvision/"
_SIZE = 224
_CLIP = (1, 3, 16, 112, 112)
_PAIR = ((1, 3, 128, 128),) * 2
_REFUSED = {
    "detection": "takes a list of images and draws proposals",
    "quantization": "has quantized weights, which need kernels of their own",
}


def load(request: SourceRequest) -> Subject:
    """Returns the subject of a model of torchvision; nothing is downloaded.

    Raises:
        UsageError: torchvision has no model of that name, or it is one for detection or quantized.
        MissingToolError: torchvision is not installed.
        SourceError: torchvision cannot build it.
    """
    models = library("torchvision", request.spec).models
    name = request.spec.removeprefix(_PREFIX)
    known = models.list_models()
    if name not in known:
        raise UsageError(f"torchvision has no model '{name}'{choices(name, known, 'it has')}")
    builder = models.get_model_builder(name)
    kind = builder.__module__.removeprefix("torchvision.models.").partition(".")[0]
    if kind in _REFUSED:
        raise UsageError(
            f"'{request.spec}' {_REFUSED[kind]}; write a file model.py with a function that builds it and its inputs, "
            "and check model.py:NAME"
        )
    return subject_of_model(request, name, lambda: _built(models, name, builder), _shapes(models, name, kind))


def _built(models: Any, name: str, builder: Any) -> nn.Module:
    """Returns the model; a backbone has pretrained weights by default."""
    backbone = {"weights_backbone": None} if "weights_backbone" in inspect.signature(builder).parameters else {}
    module: nn.Module = models.get_model(name, weights=None, **backbone)
    return module


def _shapes(models: Any, name: str, kind: str) -> tuple[tuple[int, ...], ...]:
    if kind == "video":
        return (_CLIP,)
    if kind == "optical_flow":
        return _PAIR
    transforms = models.get_model_weights(name).DEFAULT.transforms
    size = getattr(transforms, "keywords", {}).get("crop_size", _SIZE)
    return ((1, 3, size, size),)
