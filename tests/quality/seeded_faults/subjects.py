"""The models that meet the planted faults: small, with outputs that show them."""

from typing import Any

import torch
from torch import nn
from torch.nn import functional

from tests.quality.oracle_cases.fork import Function
from tests.quality.seeded_faults.fault import Subject, seeded


def network() -> Subject:
    """A network with most of what faults are planted in: linear layers, layer norm, GELU."""
    return nn.Sequential(nn.Linear(8, 16), nn.LayerNorm(16), nn.GELU(), nn.Linear(16, 8)), (torch.randn(4, 8),)


def of(compute: Any, *shapes: tuple[int, ...], scale: float = 1.0) -> Any:
    """A builder of a module that computes one function of normal inputs."""
    return seeded(lambda: (Function(compute), tuple(scale * torch.randn(shape) for shape in shapes)))


def with_linear(compute: Any, *shapes: tuple[int, ...]) -> Any:
    """The same with a square linear layer as first argument."""
    return seeded(lambda: (Function(compute, nn.Linear(8, 8)), tuple(torch.randn(shape) for shape in shapes)))


def two_outputs(linear: nn.Module, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Two outputs of one shape."""
    y = linear(x)
    return torch.sin(y), torch.cos(y)


def exact_activation(linear: nn.Module, x: torch.Tensor) -> torch.Tensor:
    """A GELU between linear layers."""
    return linear(functional.gelu(linear(x)))


def folded_weight(linear: nn.Module, x: torch.Tensor) -> torch.Tensor:
    """Something that depends on parameters only, so that optimizers fold it."""
    return x @ linear.weight.t().exp() + x


NETWORK = seeded(network)
