"""A loop over an axis that is to be dynamic: it is unrolled to the length of the example."""

import torch
from torch import nn
from torch.export import Dim


class Decay(nn.Module):
    """Returns a running sum in which the past fades, one step after the other."""

    def forward(self, series):
        total = torch.zeros_like(series[0])
        for step in range(series.shape[0]):
            total = 0.5 * total + series[step]
        return total


model = Decay().eval()
inputs = (torch.tensor([[1.0, -2.0], [0.5, 3.0], [2.0, 0.25]]),)
dynamic_shapes = ({0: Dim("time", min=1, max=64)},)
