"""Runs a function or a small module under the tape."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from trueport.adapters.float64.torch.module import EagerModule, Reference, output_leaves, to_array
from trueport.core.subject import Example
from trueport.inputs.draw import InputSet
from trueport.oracle.noise import SCREEN, Draws


class Function(nn.Module):
    """A function as a module without parameters."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self._function = function

    def forward(self, *args: Any) -> Any:
        return self._function(*args)


def input_set(*tensors: Tensor) -> InputSet:
    return InputSet("example", "example", tuple(to_array(t) for t in tensors))


def eager(program: Any, *tensors: Tensor, seed: int = 0) -> EagerModule:
    module = program if isinstance(program, nn.Module) else Function(program)
    return EagerModule(module, Example(tensors), seed=seed)


def reference(program: Any, *tensors: Tensor, draws: Draws = SCREEN, seed: int = 0) -> Reference:
    """Returns the source at these inputs."""
    return eager(program, *tensors, seed=seed).reference(input_set(*tensors), 0, draws)


def value(program: Any, *tensors: Tensor) -> Any:
    """Returns the first output in float64."""
    return reference(program, *tensors).outputs[0].value


def doubled(program: Any, *tensors: Tensor) -> list[np.ndarray]:
    """Returns the outputs of the same program in double precision."""
    wide = [t.double() if t.is_floating_point() else t.clone() for t in tensors]
    module = copy.deepcopy(program).double() if isinstance(program, nn.Module) else program
    with torch.no_grad():
        return [
            to_array(leaf) if isinstance(leaf, Tensor) else np.asarray(leaf) for _, leaf in output_leaves(module(*wide))
        ]


def normal(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def filled(module: nn.Module, seed: int = 0) -> nn.Module:
    """Gives every parameter and floating-point buffer drawn values."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, tensor in [*module.named_parameters(), *module.named_buffers()]:
            if tensor.is_floating_point():
                drawn = torch.randn(tensor.shape, generator=generator) / max(tensor.shape[-1:].numel(), 1) ** 0.5
                tensor.copy_(drawn.abs() + 0.5 if "var" in name else drawn)
    return module.eval()
