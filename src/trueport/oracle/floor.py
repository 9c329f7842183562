"""From noisy runs to a tolerance for each element.

The spread of a few runs estimates the noise of an element badly, so it is shrunk towards the spread of its neighbours
(a moderated variance, as in Smyth, Statistical Applications in Genetics and Molecular Biology 3(1), 2004). Neighbours
are elements of the same octave of magnitude in the same channel and no others: pooling a whole tensor hides one wrong
column beside a huge one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

PRIOR_DRAWS = 4.0
"""Weight of the neighbours, in draws."""


def elementwise_floor(main: Array, runs: list[Array]) -> Array:
    """Returns the size of the noise at each element: the larger of the independent and the coherent spread.

    Args:
        main: the run without noise, float64, any shape.
        runs: noisy runs of the same shape; even ones independent, odd ones coherent.

    Returns:
        float64, the shape of `main`; zero where no run differs at all.
    """
    if not runs:
        return np.zeros(main.shape)
    groups = _groups(main)
    spread = [_moderated(main, runs[first::2], groups) for first in (0, 1) if runs[first::2]]
    return np.asarray(np.sqrt(np.maximum.reduce(spread))) if spread else np.zeros(main.shape)


def _moderated(main: Array, runs: list[Array], groups: Array) -> Array:
    """Returns the mean squared deviation, shrunk towards its group; exactly zero where every run agrees."""
    total = np.zeros(main.shape)
    with np.errstate(invalid="ignore", over="ignore"):
        for run in runs:
            total += np.square(np.abs(run - main))
    total[~np.isfinite(total)] = 0.0
    own = total / len(runs)
    flat = own.ravel()
    counts = np.bincount(groups)
    means = np.bincount(groups, weights=flat) / np.maximum(counts, 1)
    pooled = means[groups].reshape(main.shape)
    shrunk = (len(runs) * own + PRIOR_DRAWS * pooled) / (len(runs) + PRIOR_DRAWS)
    return np.where(own > 0, shrunk, 0.0)


def _groups(main: Array) -> Array:
    """Returns for each element, flattened, the number of its group: octave of magnitude and channel."""
    finite = np.where(np.isfinite(main), np.abs(main), 0.0)
    _, octave = np.frexp(finite)
    key = octave.astype(np.int64) + 2048
    channel = _channel(main.shape)
    if channel is not None:
        key = key + 4096 * channel
    flat = key.ravel()
    if flat.size and int(flat.max()) <= 16 * flat.size + 65536:
        return np.asarray(flat)
    _, index = np.unique(flat, return_inverse=True)
    return np.asarray(index.ravel())


def _channel(shape: tuple[int, ...]) -> Array | None:
    """Returns the channel of each element: axis 1 from rank 3 on, the last axis of a matrix with several rows."""
    if len(shape) >= 3 or (len(shape) == 2 and shape[0] >= 8):
        axis = 1
    else:
        return None
    lead = [1] * len(shape)
    lead[axis] = shape[axis]
    return np.broadcast_to(np.arange(shape[axis]).reshape(lead), shape)
