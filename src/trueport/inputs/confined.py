"""Values within the domain of an input, in any type: drawn there, or moved there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueport.core.domain import Domain
from trueport.inputs.spec import is_float_type, is_integer_type

Array = NDArray[Any]


def drawn_within(
    domain: Domain, shape: tuple[int, ...], dtype: np.dtype[Any], sizes: Mapping[str, int], rng: np.random.Generator
) -> Array | None:
    """Returns values that cover a domain with two ends or with listed values; None for other domains.

    Args:
        domain: not fixed.
        shape: of the result.
        dtype: of the result; a real or integer type.
        sizes: symbol -> size of the dynamic axes.
        rng: source of the values.
    """
    if domain.values:
        return _chosen(domain.values, shape, dtype, rng)
    low, high = domain.bounds(sizes)
    if low is None or high is None:
        return None
    if is_integer_type(dtype):
        drawn: Array = rng.integers(int(low), int(high), size=shape, endpoint=True)
    else:
        drawn = low + (high - low) * rng.random(shape)
    return within(typed(drawn, dtype), domain, sizes)


def within(values: Array, domain: Domain, sizes: Mapping[str, int]) -> Array:
    """Returns the values with those outside of the domain moved to its nearest end; NaN stays NaN.

    Args:
        values: of a real or integer type; others are returned as they are.
        domain: where they should lie.
        sizes: symbol -> size of the dynamic axes.
    """
    dtype = values.dtype
    if not (is_float_type(dtype) or is_integer_type(dtype)) or values.size == 0:
        return values
    held = wide(values)
    if domain.values:
        allowed = np.asarray(sorted(domain.values), held.dtype)
        nearest = np.abs(held[..., None] - allowed).argmin(axis=-1)
        return typed(allowed[nearest], dtype)
    low, high = domain.bounds(sizes)
    moved = held if low is None else np.maximum(held, held.dtype.type(low))
    moved = moved if high is None else np.minimum(moved, held.dtype.type(high))
    if domain.gap:
        gap = held.dtype.type(max(domain.gap, 1) if is_integer_type(dtype) else domain.gap)
        signed = np.where(moved < 0, np.negative(gap) if held.dtype.kind != "u" else gap, gap)
        moved = np.where(np.abs(moved) < gap, signed, moved)
    return values if np.array_equal(moved, held, equal_nan=held.dtype.kind == "f") else typed(moved, dtype)


def wide(values: Array) -> Array:
    """Returns values of the types of `ml_dtypes`, and of float16, in float64 or int64; others as they are."""
    if is_float_type(values.dtype) and values.dtype.name not in ("float32", "float64", "longdouble", "float128"):
        return values.astype(np.float64)
    if values.dtype.kind == "V":
        return values.astype(np.int64)
    return values


def typed(values: Array, dtype: np.dtype[Any]) -> Array:
    """Returns numbers in a type; finite ones beyond its range become its largest, not infinite."""
    if values.dtype == dtype:
        return values
    if is_float_type(dtype):
        largest = largest_number(dtype)
        clipped = np.where(np.isfinite(values), np.clip(values, -largest, largest), values)
        with np.errstate(all="ignore"):
            return np.asarray(clipped).astype(dtype)
    if dtype.kind == "V":  # int4 and its kin
        low, high = _narrow_integers(dtype)
        return np.asarray(np.clip(values, low, high)).astype(dtype)
    return np.asarray(values).astype(dtype)


def largest_number(dtype: np.dtype[Any]) -> float:
    """Returns the largest finite number of a type of real floating point."""
    if dtype.name in ("float16", "float32", "float64"):
        return float(np.finfo(dtype).max)
    import ml_dtypes

    return float(ml_dtypes.finfo(dtype).max)  # type: ignore[no-untyped-call]  # its finfo has no annotations


def _narrow_integers(dtype: np.dtype[Any]) -> tuple[int, int]:
    bits = int(dtype.name.lstrip("uint"))
    return (0, 2**bits - 1) if dtype.name.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def _chosen(values: tuple[float, ...], shape: tuple[int, ...], dtype: np.dtype[Any], rng: np.random.Generator) -> Array:
    """Returns listed values at random; in each row at least one is not the least, as masks of real models are."""
    ordered = np.asarray(sorted(values))
    drawn = ordered[rng.integers(0, len(ordered), size=shape)] if len(ordered) > 2 else np.where(
        rng.random(shape) < 0.7, ordered[-1], ordered[0]
    )  # fmt: skip
    drawn = np.asarray(drawn)
    if drawn.ndim and drawn.shape[-1]:
        empty = (drawn == ordered[0]).all(axis=-1)
        drawn[..., 0] = np.where(empty, ordered[-1], drawn[..., 0])
    return typed(drawn, dtype)
