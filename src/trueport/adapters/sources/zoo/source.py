"""`zoo:FAMILY/NAME` as a source: one module per family, imported when it is asked for."""

from __future__ import annotations

import importlib
from typing import cast

from trueport.adapters.sources.registry import SourceLoader, SourceRequest
from trueport.adapters.sources.wording import choices
from trueport.core.errors import UsageError
from trueport.core.subject import Subject

_HERE = "trueport.adapters.sources.zoo"
FAMILIES = {
    "hf": f"{_HERE}.hf",
    "keras": f"{_HERE}.keras_models",
    "timm": f"{_HERE}.timm_models",
    "torchvision": f"{_HERE}.torchvision_models",
}
"""What stands between `zoo:` and the slash, and the module whose `load` builds such models."""


def load(request: SourceRequest) -> Subject:
    """Returns the subject of a zoo model, with weights and example drawn from the seed of the request.

    Raises:
        UsageError: no such family, or no model of that name in it.
        MissingToolError: the library behind it is not installed.
    """
    family = request.spec.removeprefix("zoo:").partition("/")[0]
    if family not in FAMILIES:
        raise UsageError(
            f"the zoo has no model '{request.spec}'"
            f"{choices(f'zoo:{family}/', [f'zoo:{name}/' for name in FAMILIES], 'its families are')}"
        )
    return cast(SourceLoader, importlib.import_module(FAMILIES[family])).load(request)
