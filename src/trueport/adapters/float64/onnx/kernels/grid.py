"""Sampling at arbitrary positions: GridSample and AffineGrid."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from trueport.adapters.float64.onnx.dtypes import Array
from trueport.adapters.float64.onnx.kernels.resize import cubic_weight
from trueport.adapters.float64.onnx.registry import Call, kernel

_CUBIC_A = -0.75


@kernel("GridSample")
def grid_sample(call: Call, x: Array, grid: Array) -> Array:
    """Returns x sampled at the positions of the grid, whose last dimension is (x, y[, z]) in [-1, 1]."""
    mode = call.attributes["mode"].replace("bilinear", "linear").replace("bicubic", "cubic")
    padding, corners = call.attributes["padding_mode"], bool(call.attributes["align_corners"])
    spatial = x.shape[2:]
    indices, weights, valid = [], [], []
    for i, size in enumerate(spatial):
        position = _denormalize(grid[..., len(spatial) - 1 - i], size, corners)
        if mode == "nearest":
            position = np.rint(position)
        if mode != "cubic":  # where, as in ONNX Runtime and PyTorch, only the taps are confined
            position = _confine(position, size, padding, corners)
        taps = _taps(position, mode)
        indices.append([_confine_index(index, size, padding, corners) for index, _ in taps])
        valid.append([(index >= 0) & (index < size) for index, _ in taps])
        weights.append([weight for _, weight in taps])
    result = np.zeros((*x.shape[:2], *grid.shape[1:-1]))
    batch = np.arange(x.shape[0]).reshape(-1, *[1] * len(spatial))
    for choice in product(*(range(len(taps)) for taps in weights)):
        weight = np.ones(())
        inside = np.ones((), dtype=np.bool_)
        for i, tap in enumerate(choice):
            weight = weight * weights[i][tap]
            inside = inside & valid[i][tap]
        where: tuple[Any, ...] = (batch, slice(None), *(indices[i][tap] for i, tap in enumerate(choice)))
        picked = np.moveaxis(x[where], -1, 1)
        if padding == "zeros":
            picked = np.where(inside[:, None], picked, 0.0)
        result += picked * weight[:, None]
    return result.astype(x.dtype, copy=False)


def _denormalize(position: Array, size: int, corners: bool) -> Array:
    if corners:
        return (position + 1.0) / 2.0 * (size - 1)
    return ((position + 1.0) * size - 1.0) / 2.0


def _reflect(position: Array, low: float, high: float) -> Array:
    span = high - low
    if span == 0:
        return np.full_like(position, low)
    distance = np.where(position < low, low - position, position - high)
    count = np.trunc(distance / span)
    rest = distance - count * span
    even = np.mod(count, 2) == 0
    below = np.where(even, low + rest, high - rest)
    above = np.where(even, high - rest, low + rest)
    return np.where(position < low, below, np.where(position > high, above, position))


def _borders(size: int, corners: bool) -> tuple[float, float]:
    return (0.0, size - 1.0) if corners else (-0.5, size - 0.5)


def _confine(position: Array, size: int, padding: str, corners: bool) -> Array:
    low, high = _borders(size, corners)
    outside = (position < low) | (position > high)
    if padding == "border":
        return np.where(outside, np.clip(position, 0, size - 1), position)
    return _reflect(position, low, high) if padding == "reflection" else position


def _confine_index(index: Array, size: int, padding: str, corners: bool) -> Array:
    if padding == "reflection":
        low, high = _borders(size, corners)
        index = np.trunc(_reflect(index, low, high))
    return np.asarray(np.clip(np.nan_to_num(index), 0, size - 1), dtype=np.int64)


def _taps(position: Array, mode: str) -> list[tuple[Array, Array]]:
    if mode == "nearest":
        # A position reflected about a half-integer border is whole again; truncation mirrors the reference.
        return [(np.trunc(position), np.ones_like(position))]
    base = np.floor(position)
    ratio = position - base
    if mode == "linear":
        return [(base, 1.0 - ratio), (base + 1.0, ratio)]
    return [(base + k, cubic_weight(np.abs(k - ratio), _CUBIC_A)) for k in (-1, 0, 1, 2)]


@kernel("AffineGrid")
def affine_grid(call: Call, theta: Array, size: Array) -> Array:
    """Returns the grid of positions that an affine map makes of a regular one."""
    spatial = size.tolist()[2:]
    corners = bool(call.attributes["align_corners"])
    lines = [np.linspace(-1.0, 1.0, n) if corners and n > 1 else (2.0 * np.arange(n) + 1.0) / n - 1.0 for n in spatial]
    if corners:
        lines = [line if n > 1 else np.full(1, -1.0) for line, n in zip(lines, spatial, strict=True)]
    mesh = np.meshgrid(*lines, indexing="ij")
    points = np.stack([*reversed(mesh), np.ones(spatial)], axis=-1)
    return np.asarray(np.einsum("...k,njk->n...j", points, theta))
