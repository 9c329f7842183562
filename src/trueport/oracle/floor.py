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


class Spread:
    """Adds up the noisy runs of one value as they come, so that none of them must be kept.

    Args:
        main: the run without noise, float64 or complex128, any shape.
    """

    def __init__(self, main: Array) -> None:
        self._main = main
        self._totals: list[Array] = []
        self._counts = [0, 0]

    def add(self, run: Array) -> None:
        """Adds a run of the same shape; even ones have independent noise, odd ones coherent noise."""
        parity = sum(self._counts) % 2
        with np.errstate(invalid="ignore", over="ignore"):
            squares = np.square(np.abs(run - self._main))
            if parity < len(self._totals):
                self._totals[parity] += squares
            else:
                self._totals.append(np.asarray(squares))
        self._counts[parity] += 1

    def floor(self) -> Array:
        """Returns the size of the noise at each element: the larger of the independent and the coherent spread.

        Returns:
            float64, the shape of the value; zero where no run differs at all.
        """
        if not self._totals:
            return np.zeros(self._main.shape)
        groups = _groups(self._main)
        spread = [_moderated(t, n, groups) for t, n in zip(self._totals, self._counts, strict=False)]
        return np.asarray(np.sqrt(np.maximum.reduce(spread)))


def elementwise_floor(main: Array, runs: list[Array]) -> Array:
    """Returns the size of the noise at each element; see `Spread`.

    Args:
        main: the run without noise, float64, any shape.
        runs: noisy runs of the same shape; even ones independent, odd ones coherent.

    Returns:
        float64, the shape of `main`; zero where no run differs at all.
    """
    spread = Spread(main)
    for run in runs:
        spread.add(run)
    return spread.floor()


def _moderated(total: Array, count: int, groups: Array) -> Array:
    """Returns the mean squared deviation, shrunk towards its group; exactly zero where every run agrees."""
    own = np.where(np.isfinite(total), total, 0.0) / count
    counts = np.bincount(groups)
    means = np.bincount(groups, weights=own.ravel()) / np.maximum(counts, 1)
    pooled = means[groups].reshape(own.shape)
    shrunk = (count * own + PRIOR_DRAWS * pooled) / (count + PRIOR_DRAWS)
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
