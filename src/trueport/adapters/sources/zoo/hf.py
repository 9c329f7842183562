"""`zoo:hf/NAME`: architectures of transformers in small configurations."""

from __future__ import annotations

import importlib

from trueport.adapters.sources.fingerprint import sha256_of_module
from trueport.adapters.sources.loaded import LoadedSource, subject_from
from trueport.adapters.sources.registry import SourceRequest
from trueport.adapters.sources.wording import choices
from trueport.adapters.sources.zoo import missing_libraries
from trueport.adapters.sources.zoo.architectures import ARCHITECTURES
from trueport.core.errors import MissingToolError, UsageError
from trueport.core.subject import Subject

_PREFIX = "zoo:hf/"


def load(request: SourceRequest) -> Subject:
    """Returns the subject of a zoo model, with weights and example drawn from the seed of the request.

    Raises:
        UsageError: no model of that name, or this release of transformers lacks it.
        MissingToolError: transformers is not installed.
    """
    name = request.spec.removeprefix(_PREFIX)
    if name not in ARCHITECTURES:
        known = [f"{_PREFIX}{key}" for key in ARCHITECTURES]
        raise UsageError(f"the zoo has no model '{request.spec}'{choices(request.spec, known, 'it has')}")
    if missing_libraries():
        raise MissingToolError(request.spec, "pip install 'trueport[zoo]'")
    transformers = importlib.import_module("transformers")
    architecture = ARCHITECTURES[name]
    lacking = [cls for cls in (architecture.config, architecture.model) if not hasattr(transformers, cls)]
    if lacking:
        raise UsageError(
            f"'{request.spec}' needs {' and '.join(lacking)}, which transformers {transformers.__version__} lacks; "
            "install another release of transformers"
        )
    from trueport.adapters.sources.zoo.build import build

    module, example, dynamic_shapes = build(architecture, request.seed)
    return subject_from(
        LoadedSource(
            name=name,
            sha256=sha256_of_module(module),
            model=module,
            examples=(example,),
            dynamic_shapes=dynamic_shapes,
        ),
        request,
    )
