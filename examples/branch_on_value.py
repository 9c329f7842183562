"""A branch that depends on a value: tracing follows the one that the example takes, and forgets the other."""

import torch
from torch import nn


class Rectify(nn.Module):
    """Returns its input when its sum is positive, else the negative of it."""

    def forward(self, x):
        if x.sum() > 0:
            return x
        return -x


model = Rectify().eval()
inputs = (torch.tensor([1.0, 2.0, -0.5]),)
