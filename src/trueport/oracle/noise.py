"""The rounding noise of one operator, and how it is injected.

A run in float64 has, for the purposes of float32, no rounding error. Adding to each operator's result what rounding in
the model's own type would have done there, and looking at how far the outputs move, measures the model's conditioning
along every path at once. Noise is drawn in two ways because errors come in two ways: independently for each element
(ordinary rounding), and coherently for a whole tensor (a constant rounded once, a biased kernel), where averaging does
not help.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueport.oracle.units import FLOAT_TYPES

Array = NDArray[Any]

MEANING_SAFETY = 8.0
"""How much rougher than one float64 rounding the candidate's float64 evaluation may be at one operator: another
decomposition of the operator, another order of summation in BLAS."""


EQUAL_TERMS = 0.999
"""From which ratio of S^2 to n Q (at most 1, by Cauchy and Schwarz) terms count as equal."""


@dataclass(frozen=True)
class Draws:
    """How many noisy runs accompany one evaluation.

    Attributes:
        arithmetic: runs with noise of the model's own type; even ones independent, odd ones coherent.
        meaning: runs with float64-sized noise, and noise of the model's own type in constant sub-graphs only.
    """

    arithmetic: int = 4
    meaning: int = 2

    @property
    def total(self) -> int:
        """All runs; the arithmetic ones come first."""
        return self.arithmetic + self.meaning


SCREEN = Draws(4, 2)
"""Enough to acquit, never enough for an alarm."""
SCREEN_LARGE = Draws(2, 1)
"""The same for large models, in which every run is dear."""
ALARM = Draws(16, 12)
"""What an alarm needs."""


def summation_noise(total: Array, squares: Array, terms: int | Array, unit_roundoff: float) -> Array:
    """Returns the error of another order of summation of `terms` terms.

    Random signs of the partial sums' rounding errors in a random order give the rms error
    `u sqrt(n (S^2 / 3 + Q / 2) / 3)`, with S the result and Q the sum of the squared terms. Equal terms (a constant
    image) round the same way at every step, and errors add up to `u n |S| / 2`; terms are equal where `S^2 = n Q`.

    Args:
        total: S, any shape, float64.
        squares: Q, the same shape.
        terms: n, the same for all elements or one for each.
        unit_roundoff: u of the type in which partial sums are held.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        random = unit_roundoff * np.sqrt(terms * (np.square(total) / 3 + np.abs(squares) / 2) / 3)
        equal = np.square(total) >= EQUAL_TERMS * terms * np.abs(squares)
        noise = np.where(equal, unit_roundoff * terms * np.abs(total) / 2, random)
        return np.asarray(np.where(np.asarray(terms) > 1, noise, 0.0))


def local_noise(exact: Array, rounded: Array | None, dtype: str, extra: Array | None, *, inexact: bool) -> Array:
    """Returns the size of the rounding error that this operator may make at each element.

    Args:
        exact: the operator's result in float64.
        rounded: its result in its own type on the same inputs, or None where it could not be had.
        dtype: name of its own type.
        extra: summation noise, or None.
        inexact: whether the result may be off by a last rounding even where `rounded` happens to be exact. An operator
            that IEEE 754 rounds correctly and that was exact at every element here is exact.
    """
    unit = FLOAT_TYPES[dtype]
    magnitude = np.abs(exact)
    noise = np.zeros_like(magnitude)
    if rounded is not None:
        with np.errstate(invalid="ignore"):
            measured = np.abs(rounded - exact)
        noise = np.where(np.isfinite(measured), measured, 0.0)
        inexact = inexact or bool(noise.any())
    if inexact:
        noise = np.maximum(noise, magnitude * unit.unit_roundoff + unit.flushed)
    if extra is not None:
        noise = np.maximum(noise, extra)
    return np.asarray(np.where(np.isfinite(noise), noise, 0.0))


def draw(rng: np.random.Generator, noise: Array, *, coherent: bool) -> Array:
    """Returns one realization of noise of this size: normal and independent, or one random sign for all elements."""
    if coherent:
        return np.asarray(noise * (1.0 if rng.integers(2) else -1.0))
    return np.asarray(noise * rng.standard_normal(noise.shape))


def meaning_scale(dtype: str) -> float:
    """Returns the factor from rounding noise in `dtype` to the noise of a float64 evaluation."""
    return MEANING_SAFETY * FLOAT_TYPES["float64"].unit_roundoff / FLOAT_TYPES[dtype].unit_roundoff
