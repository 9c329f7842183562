"""What identifies a tensor when names are lost and its elements may have been reordered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


@dataclass(frozen=True)
class Fingerprint:
    """Sums over a tensor that do not depend on the order of its elements."""

    size: int
    total: float
    absolute: float
    squares: float

    @classmethod
    def of(cls, values: Array) -> Fingerprint:
        """Returns the fingerprint of the finite elements."""
        finite = np.where(np.isfinite(values), values, 0.0)
        return cls(values.size, float(finite.sum()), float(np.abs(finite).sum()), float(np.square(finite).sum()))

    def matches(self, other: Fingerprint, tolerance: float = 1e-6) -> bool:
        """Whether both may come from the same numbers in another order."""
        if self.size != other.size:
            return False
        near_total = abs(self.total - other.total) <= tolerance * max(self.absolute, other.absolute)
        near = [
            abs(a - b) <= tolerance * max(a, b)
            for a, b in ((self.absolute, other.absolute), (self.squares, other.squares))
        ]
        return near_total and all(near)
