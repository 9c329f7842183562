"""`zoo:timm/NAME`: any model of timm without pretrained weights, on one image of the size that it names."""

from __future__ import annotations

from trueport.adapters.sources.registry import SourceRequest
from trueport.adapters.sources.wording import choices
from trueport.adapters.sources.zoo.image_models import library, subject_of_model
from trueport.core.errors import UsageError
from trueport.core.subject import Subject

_PREFIX = "zoo:timm/"
_SIZE = (3, 224, 224)


def load(request: SourceRequest) -> Subject:
    """Returns the subject of a model of timm; nothing is downloaded.

    Raises:
        UsageError: timm has no model of that name.
        MissingToolError: timm is not installed.
        SourceError: timm cannot build it.
    """
    timm = library("timm", request.spec)
    name = request.spec.removeprefix(_PREFIX)
    known = timm.list_models()
    # A name may carry the tag of its weights behind a point, which makes no other architecture.
    if name.partition(".")[0] not in known:
        raise UsageError(f"timm has no model '{name}'{choices(name, known, 'it has')}")
    settings = getattr(timm.get_pretrained_cfg(name, allow_unregistered=True), "input_size", None)
    size = tuple(int(n) for n in settings or _SIZE)
    return subject_of_model(request, name, lambda: timm.create_model(name, pretrained=False), ((1, *size),))
