"""What may vary: the tensor inputs of a subject and their dynamic axes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueport.core.domain import Domain

Array = NDArray[Any]


@dataclass(frozen=True)
class DynamicAxis:
    """One axis of one input that may have other sizes.

    Attributes:
        input: name of the input.
        axis: non-negative index.
        symbol: axes with the same symbol change together.
        minimum: least size, inclusive.
        maximum: largest size, inclusive, or None.
        scale: the size is `scale * symbol + offset` (derived dimensions).
        offset: see `scale`.
    """

    input: str
    axis: int
    symbol: str
    minimum: int = 1
    maximum: int | None = None
    scale: int = 1
    offset: int = 0


@dataclass(frozen=True)
class LeafSpec:
    """One tensor input: its example and what kind of values it holds.

    Attributes:
        name: of the input.
        example: its values in the first example.
        axes: axis -> the sizes that it may have.
        domain: which values the operators that read it accept, or None where nothing is known but the example.
    """

    name: str
    example: Array
    axes: Mapping[int, DynamicAxis] = field(default_factory=dict)
    domain: Domain | None = None

    @property
    def is_float(self) -> bool:
        """Whether it holds real numbers of floating point, those of `ml_dtypes` (bfloat16, float8) included."""
        return is_float_type(self.example.dtype)

    @property
    def is_counter(self) -> bool:
        """Whether an integer input counts along its last axis (position ids): it keeps counting at other sizes."""
        values = self.example
        if values.dtype.kind not in "iu" or values.ndim == 0 or values.shape[-1] < 2:
            return False
        return bool(np.all(np.diff(values, axis=-1) == 1))

    @property
    def is_integer_mask(self) -> bool:
        """Whether an integer input holds just 0 and 1, or a matrix of ones, as attention masks of text models do."""
        values = self.example
        if values.dtype.kind not in "iu" or values.ndim == 0:
            return False
        held = set(np.unique(values).tolist())
        return held == {0, 1} or (held == {1} and values.ndim >= 2)

    @property
    def is_mask(self) -> bool:
        """Whether a floating-point input holds just 0 and 1, or 0 and a very negative number (additive mask)."""
        values = self.example
        if values.dtype.kind != "f" or values.size < 2:
            return False
        distinct = np.unique(values)
        if distinct.size != 2 or not (distinct == 0).any():
            return False
        other = distinct[distinct != 0][0]
        return bool(other == 1 or other < -1e4)


def is_float_type(dtype: np.dtype[Any]) -> bool:
    """Whether a type is one of real floating point; NumPy itself calls those of `ml_dtypes` neither float nor number.

    >>> is_float_type(np.dtype("float16")), is_float_type(np.dtype("int8"))
    (True, False)
    """
    if dtype.kind == "f":
        return True
    return dtype.kind == "V" and dtype.name.startswith(("bfloat", "float"))


def is_integer_type(dtype: np.dtype[Any]) -> bool:
    """Whether a type is one of integers, int4 and uint4 of `ml_dtypes` included."""
    return dtype.kind in "iu" or (dtype.kind == "V" and dtype.name.startswith(("int", "uint")))
