"""Attention with a row that is masked out: PyTorch gives zeros, the exported graph an average. It must be seen."""

from __future__ import annotations

import torch
from torch import nn

import trueport
from trueport.core.taxonomy import Stage, Verdict


class Attention(nn.Module):
    def forward(self, x, mask):
        return nn.functional.scaled_dot_product_attention(x, x, x, attn_mask=mask)


def test_a_row_that_is_masked_out_is_a_difference():
    x = torch.randn(1, 1, 2, 4, generator=torch.Generator().manual_seed(0))
    mask = torch.tensor([[[[True, False], [False, False]]]])
    check = trueport.check(Attention(), (x, mask), isolate=False, samples=1).checks[0]
    assert (check.verdict, check.stage) == (Verdict.DIVERGENT, Stage.NODE_CONVERSION)
