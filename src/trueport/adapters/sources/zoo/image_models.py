"""What the libraries of image models have in common: importing one, drawing its weights, and making the subject."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import nn

from trueport.adapters.sources.fingerprint import sha256_of_module
from trueport.adapters.sources.global_state import preserved_global_state
from trueport.adapters.sources.loaded import LoadedSource, subject_from
from trueport.adapters.sources.registry import SourceRequest
from trueport.adapters.sources.zoo.calls import Outputs
from trueport.adapters.sources.zoo.weights import calibrate, draw_weights
from trueport.core.errors import MissingToolError, SourceError, ToolError
from trueport.core.subject import Example, Subject

_CALIBRATION_ROWS = 4


def library(name: str, requested: str) -> Any:
    """Returns the library.

    Args:
        name: as it is imported.
        requested: the specification that needs it.

    Raises:
        MissingToolError: it is not installed.
        ToolError: it is, and cannot be imported: most often a build for another release of torch.
    """
    if importlib.util.find_spec(name) is None:
        raise MissingToolError(requested, f"pip install {name}")
    try:
        return importlib.import_module(name)
    except Exception as error:
        raise ToolError(
            f"'{requested}' needs {name}, which is installed and cannot be imported beside torch {torch.__version__}: "
            f"{type(error).__name__}: {error}; install the release of {name} that belongs to this torch"
        ) from error


def subject_of_model(
    request: SourceRequest, name: str, make: Callable[[], nn.Module], shapes: tuple[tuple[int, ...], ...]
) -> Subject:
    """Returns the subject of a model without pretrained weights.

    Args:
        request: whose seed draws the weights and the example.
        name: for people.
        make: builds the model; draws from the global generators as it likes.
        shapes: of its inputs, the batch first.

    Raises:
        SourceError: the library cannot build it.
    """
    generator = np.random.default_rng(request.seed)
    with preserved_global_state(request.seed):
        try:
            module = Outputs(make())
        except Exception as error:
            raise SourceError(f"'{request.spec}' cannot be built: {type(error).__name__}: {error}") from error
        draw_weights(module, generator)
        calibrate(module, tuple(_images((_CALIBRATION_ROWS, *shape[1:]), generator) for shape in shapes))
    module.requires_grad_(requires_grad=False)
    example = Example(tuple(_images(shape, generator) for shape in shapes))
    return subject_from(LoadedSource(name, sha256_of_module(module), module, (example,)), request)


def _images(shape: tuple[int, ...], generator: np.random.Generator) -> torch.Tensor:
    return torch.from_numpy(generator.standard_normal(shape).astype(np.float32))
