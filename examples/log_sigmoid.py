"""A logarithm of a sigmoid that overflows: the translation takes the two apart and gives -inf for large negative x."""

import torch
from torch import nn

model = nn.LogSigmoid().eval()
inputs = (torch.linspace(-5, 5, 12).reshape(3, 4),)
