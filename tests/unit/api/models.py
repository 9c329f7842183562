"""Small models that tests of whole checks use; as a file of their own they can be checked by path."""

from __future__ import annotations

import torch
from torch import nn
from torch.export import Dim


class Classifier(nn.Module):
    """Three classes from four numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 3)
        with torch.no_grad():
            self.linear.weight.copy_(torch.tensor([[1.0, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0]]))
            self.linear.bias.zero_()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x)


class Recurrent(nn.Module):
    """What torch captures of it depends on what was captured before."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.gru = nn.GRU(2, hidden)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.gru(x)[0]


class Floor(nn.Module):
    """Division that torch-script truncates; right at an example that divides without rest."""

    def forward(self, a: torch.Tensor) -> torch.Tensor:
        return a // 2


def classifier():
    return Classifier().eval(), (torch.tensor([[0.5, -1.0, 2.0, 0.1], [1.5, 0.3, -0.2, 0.7]]),)


classifier.dynamic_shapes = ({0: Dim("batch")},)


def recurrent(hidden: int = 2):
    return Recurrent(hidden).eval(), (torch.linspace(-1, 1, 12).reshape(3, 2, 2),)


def another_recurrent():
    return recurrent(3)


recurrent.dynamic_shapes = another_recurrent.dynamic_shapes = ({0: Dim("time"), 1: Dim("batch")},)


def floor():
    return Floor(), (torch.tensor([-8, 8, -7, 7]),)
