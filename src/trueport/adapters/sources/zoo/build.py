"""Builds an architecture of the zoo: module, example and dynamic dimensions, all from one seed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.export import Dim

from trueport.adapters.sources.global_state import preserved_global_state
from trueport.adapters.sources.zoo.architecture import Architecture, InputSpec
from trueport.adapters.sources.zoo.calls import CALLS
from trueport.adapters.sources.zoo.weights import calibrate, draw_weights
from trueport.core.subject import Example

_LARGEST_BATCH = 64
_CALIBRATION_ROWS = 16


def build(architecture: Architecture, seed: int) -> tuple[nn.Module, Example, dict[str, Any]]:
    """Returns the module in eval mode, its example, and the dynamic shapes of its inputs.

    Equal seeds give equal weights and examples, whatever ran before; no global random state is changed.
    """
    import transformers

    generator = np.random.default_rng(seed)
    args = tuple(values_of(spec, generator) for spec in architecture.inputs)
    call = CALLS[architecture.call or tuple(spec.name for spec in architecture.inputs)]
    if architecture.weights is not None:
        module = call(build(architecture.weights, seed)[0].model)
        return module.eval(), Example(args), _dynamic_shapes(architecture)
    # The constructor draws weights of its own from the global generator; they are all drawn anew.
    with preserved_global_state(seed):
        config = _configuration(transformers, architecture.config, architecture.settings)
        model = getattr(transformers, architecture.model)(config)
        module = call(model)
        draw_weights(module, generator)
        # More rows than the example has, so that the statistics are not those of two images.
        calibrate(module, tuple(values_of(spec, generator, rows=_CALIBRATION_ROWS) for spec in architecture.inputs))
    module.requires_grad_(requires_grad=False)
    return module, Example(args), _dynamic_shapes(architecture)


def _configuration(transformers: Any, name: str, settings: Mapping[str, Any]) -> Any:
    values = {}
    for key, value in settings.items():
        nested = isinstance(value, Mapping) and "__class__" in value
        values[key] = (
            _configuration(transformers, value["__class__"], {k: v for k, v in value.items() if k != "__class__"})
            if nested
            else value
        )
    return getattr(transformers, name)(**values)


def values_of(spec: InputSpec, generator: np.random.Generator, rows: int | None = None) -> Any:
    """Returns drawn values of an input (a tensor, or those of a cache), with another number of rows if given."""
    shape = spec.shape if rows is None else (rows, *spec.shape[1:])
    if spec.kind == "tokens":
        # Ids below 3 are special to some models (padding, end of text).
        return torch.from_numpy(generator.integers(3, spec.high, shape))
    if spec.kind in ("mask", "left-mask"):
        values = np.ones(shape, dtype=np.int64)
        padded = shape[1] // 4
        values[-1, shape[1] - padded :] = 0
        return torch.from_numpy(values if spec.kind == "mask" else values[:, ::-1].copy())
    if spec.kind == "cache":
        return tuple((_normal(shape, generator), _normal(shape, generator)) for _ in range(spec.layers))
    return _normal(shape, generator)


def _normal(shape: tuple[int, ...], generator: np.random.Generator) -> torch.Tensor:
    return torch.from_numpy(generator.standard_normal(shape).astype(np.float32))


def _dynamic_shapes(architecture: Architecture) -> dict[str, Any]:
    symbols: dict[str, Any] = {}
    shapes: dict[str, Any] = {}
    for spec in architecture.inputs:
        for symbol in spec.dynamic.values():
            largest = architecture.longest.get(symbol, _LARGEST_BATCH)
            symbols.setdefault(symbol, Dim(symbol, min=1, max=largest) if symbol.isidentifier() else None)
    for spec in architecture.inputs:
        axes = {axis: _dimension(symbol, symbols) for axis, symbol in spec.dynamic.items()}
        shapes[spec.name] = ((axes, axes),) * spec.layers if spec.kind == "cache" else axes
    return shapes


def _dimension(symbol: str, symbols: dict[str, Any]) -> Any:
    """Returns the dimension of a symbol, or of one with a number added to it."""
    base, _, offset = symbol.partition("+")
    return symbols[base] + int(offset) if offset else symbols[base]
