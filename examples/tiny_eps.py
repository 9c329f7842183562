"""A guard against division by zero that the optimizer takes away: it drops `x + c` for every |c| up to 1e-8."""

import torch
from torch import nn


class Normalize(nn.Module):
    """Divides rows by the sum of their magnitudes."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Returns the rows of x, scaled; a row of zeros stays zero."""
        return x / (x.abs().sum(-1, keepdim=True) + 1e-12)


model = Normalize().eval()
inputs = (torch.linspace(-1, 2, 12).reshape(3, 4),)
