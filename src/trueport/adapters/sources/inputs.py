"""Inputs that the user gives on the command line: `--inputs` and `--input-shape`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import nn

from trueport.adapters.sources.input_forms import examples_from_value
from trueport.adapters.sources.input_sets import examples_of_option
from trueport.adapters.sources.npz_inputs import arrays_from_npz
from trueport.adapters.sources.replaced_leaves import call_from_names, with_leaves
from trueport.adapters.sources.torch_inputs import leaf_names
from trueport.adapters.sources.wording import choices, described
from trueport.core.errors import UsageError
from trueport.core.subject import Example


def examples_from_option(
    option: str, model: nn.Module, existing: tuple[Example, ...], seed: int
) -> tuple[Example, ...]:
    """Returns the examples of `--inputs`, which replace those of the source.

    Args:
        option: `file.npz` with one array per input, or `file.py[:NAME]` with the forms of `inputs`.
        model: names the inputs of an `.npz` by the parameters of its `forward`.
        existing: the examples of the source; the first gives names, dtypes and ranks that arrays must have.
        seed: seeds the global generators while the file runs.

    Raises:
        UsageError: the file is none of the two, or its content does not fit the model.
    """

    def of_arrays(path: str) -> tuple[Example, ...]:
        tensors = arrays_from_npz(path)
        if existing:
            return (with_leaves(existing[0], model, tensors, path, complete=True),)
        return (call_from_names(model, tensors, path),)

    return examples_of_option(option, seed, of_arrays=of_arrays, of_value=examples_from_value)


def with_input_shapes(
    shapes: Mapping[str, Sequence[int]], model: nn.Module, existing: tuple[Example, ...], seed: int
) -> tuple[Example, ...]:
    """Returns the examples with the named inputs drawn anew in the given shapes.

    Floating-point values are standard normal; integers are drawn from the range of the present input, booleans
    evenly.  Without an example every input is float32.  The draws depend on `seed` and the order of names only.

    Raises:
        UsageError: unknown names, sizes that are no sizes, or inputs that remain without a value.
    """
    for name, shape in shapes.items():
        if not all(isinstance(size, int) and not isinstance(size, bool) and size >= 0 for size in shape):
            raise UsageError(f"expected the sizes of --input-shape {name} to be integers >= 0, got {list(shape)}")
    generator = np.random.default_rng(seed)
    if not existing:
        drawn = {name: _drawn(tuple(shape), None, generator) for name, shape in shapes.items()}
        return (call_from_names(model, drawn, "--input-shape"),)
    return tuple(_redrawn(example, shapes, model, generator) for example in existing)


def _redrawn(
    example: Example, shapes: Mapping[str, Sequence[int]], model: nn.Module, generator: np.random.Generator
) -> Example:
    leaves = dict(leaf_names(model, example.args, example.kwargs))
    drawn = {}
    for name, shape in shapes.items():
        if name not in leaves:
            raise UsageError(
                f"--input-shape names '{name}', which is no input of the model{choices(name, leaves, 'its inputs are')}"
            )
        if not isinstance(leaves[name], torch.Tensor):
            raise UsageError(f"--input-shape names '{name}', which is no tensor but {described(leaves[name])}")
        drawn[name] = _drawn(tuple(shape), leaves[name], generator)
    return with_leaves(example, model, drawn, "--input-shape", complete=False)


def _drawn(shape: tuple[int, ...], like: Any, generator: np.random.Generator) -> torch.Tensor:
    if like is None or like.is_floating_point() or like.is_complex():
        normal = torch.from_numpy(np.asarray(generator.standard_normal(shape), dtype=np.float64))
        return normal.to(torch.float32 if like is None else like.dtype)
    if like.dtype == torch.bool:
        return torch.from_numpy(np.asarray(generator.integers(0, 2, shape), dtype=np.int64)).to(torch.bool)
    low, high = (int(like.min()), int(like.max())) if like.numel() else (0, 1)
    integers = np.asarray(generator.integers(low, high, shape, endpoint=True), dtype=np.int64)
    return torch.from_numpy(integers).to(like.dtype)
