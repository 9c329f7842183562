"""Attention with a mask that hides everything from one query: eager PyTorch answers 0, the exported file an average."""

import torch
from torch import nn


class Attention(nn.Module):
    """Scaled dot-product attention with a boolean mask."""

    def forward(self, query: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Returns the attention of the rows among themselves."""
        return nn.functional.scaled_dot_product_attention(query, query, query, attn_mask=mask)


_mask = torch.ones(1, 1, 4, 4, dtype=torch.bool).tril()
_mask[..., 0, :] = False

model = Attention().eval()
inputs = (torch.linspace(-1, 1, 32).reshape(1, 1, 4, 8), _mask)
