"""Small models that both sides of the benchmark work on; each function returns `(module, args)`."""

from __future__ import annotations

import torch
from torch import nn

Subject = tuple[nn.Module, tuple[torch.Tensor, ...]]


class _LastState(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(16, 32, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        sequence, _ = self.lstm(x)
        return sequence[:, -1]


class _Attention(nn.Module):
    def __init__(self, width: int = 32, heads: int = 4) -> None:
        super().__init__()
        self.heads = heads
        self.norm = nn.LayerNorm(width)
        self.project = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        parts = self.project(self.norm(x)).view(batch, length, 3, self.heads, width // self.heads).unbind(2)
        query, key, value = (part.transpose(1, 2) for part in parts)
        mixed = nn.functional.scaled_dot_product_attention(query, key, value)
        return x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))


def mlp() -> Subject:
    """Returns three linear layers."""
    torch.manual_seed(0)
    layers = [nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 10)]
    return nn.Sequential(*layers).eval(), (torch.randn(4, 32),)


def cnn() -> Subject:
    """Returns two convolutions with batch norm."""
    torch.manual_seed(0)
    layers = [
        nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(),
        nn.Conv2d(8, 16, 3, stride=2), nn.BatchNorm2d(16), nn.ReLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 10),
    ]  # fmt: skip
    return nn.Sequential(*layers).eval(), (torch.randn(2, 3, 16, 16),)


def encoder_layer() -> Subject:
    """Returns one layer of a transformer's encoder."""
    torch.manual_seed(0)
    return nn.TransformerEncoderLayer(32, 4, 64, batch_first=True).eval(), (torch.randn(2, 8, 32),)


def lstm() -> Subject:
    """Returns one recurrent layer over eight steps."""
    torch.manual_seed(0)
    return _LastState().eval(), (torch.randn(2, 8, 16),)


def attention() -> Subject:
    """Returns two blocks of attention with residuals."""
    torch.manual_seed(0)
    return nn.Sequential(_Attention(), _Attention()).eval(), (torch.randn(2, 8, 32),)


MODELS = {made.__name__: made for made in (mlp, cnn, encoder_layer, lstm, attention)}
