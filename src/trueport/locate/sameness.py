"""Whether two values of two runs in float64 are the same beside their noise."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueport.oracle.thresholds import THRESHOLDS

Array = NDArray[Any]


def same_within(want: Array, value: Array, floor: Array | None) -> bool:
    """Whether a value is another one, element by element; values of unlike kind or shape are not.

    Args:
        want: the source's.
        value: the candidate's.
        floor: noise of `want`, the same shape; None where it was not measured.
    """
    if want.shape != value.shape or (want.dtype.kind in "fc") != (value.dtype.kind in "fc"):
        return False
    if want.dtype.kind not in "fc":
        return bool(np.array_equal(want, value))
    allowed = np.abs(want) * 2.0**-46 + (0.0 if floor is None else THRESHOLDS.meaning * floor)
    with np.errstate(invalid="ignore"):
        return bool(((np.abs(value - want) <= allowed) | (value == want)).all())
