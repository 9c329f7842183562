"""What a source holds: numbers that a candidate may hold bit for bit, and the types in which it rounds.

Which numbers of a candidate are the source's own, and which were computed by the converter?

A converter may fold a batch normalization into a convolution, or write 1/sqrt(2) as float32: such numbers are good to a
last place or two of their type, and nothing else of the candidate may differ. Numbers are matched one by one, not
tensor by tensor, so that transposed, split, joined and reordered weights are still recognized.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueport.oracle.units import FLOAT_TYPES, float_type

Array = NDArray[Any]

SIMPLE_BITS = 10
"""Numbers with no more significant bits than this are taken for written, not computed: 0.5, 3, -6, 1024."""
SIMPLE_BITS_OF_HALVES = 4
"""The same for two-byte types, half of whose numbers have no more than ten significant bits."""


def digest(values: Array) -> bytes:
    """Returns what identifies the numbers of a tensor in order, whatever its shape."""
    return hashlib.blake2b(np.ascontiguousarray(values).tobytes(), digest_size=16).digest()


_LARGEST = [kind.largest for kind in FLOAT_TYPES.values()]
"""`finfo(type).max` is written into masks; moved by a last place it would become infinite."""


class KnownNumbers:
    """The numbers that the source holds: parameters, buffers and literals.

    Args:
        arrays: parameters and buffers in their own types.
        literals: Python numbers that appear in the program, as float64.
        types: names of the floating-point types that values of the source have. A cast to another, narrower one is no
            rounding of the source's and is carried out for real even in float64.
        folds: the source has normalizations that a converter may fold into other weights.
    """

    def __init__(
        self,
        arrays: Iterable[Array],
        literals: Iterable[float] = (),
        types: Iterable[str] = ("float32",),
        *,
        folds: bool = False,
    ) -> None:
        self.types = frozenset(types)
        self._folds = folds
        self._arrays = list(arrays)
        self._literals = np.asarray(sorted(set(literals)), dtype=np.float64)

    def is_foreign(self, dtype: str) -> bool:
        """Whether a cast to this type loses what no value of the source loses."""
        kind = float_type(dtype)
        return kind is not None and dtype not in self.types and kind.unit_roundoff > 2.0**-53

    @cached_property
    def _digests(self) -> frozenset[bytes]:
        """Whole tensors that the source holds: most weights are found so, without looking at single numbers."""
        return frozenset(digest(a) for a in self._arrays)

    @cached_property
    def _sorted(self) -> Array:
        parts = [np.asarray(a, dtype=np.float64).ravel() for a in self._arrays if a.dtype.kind == "f"]
        return np.unique(np.concatenate([*parts, self._literals])) if parts else self._literals

    def computed(self, values: Array) -> Array:
        """Returns True where a number is neither the source's own (up to sign) nor a simple one.

        Args:
            values: any shape, floating point.
        """
        if not self._folds and digest(np.asarray(values)) in self._digests:
            return np.zeros(np.shape(values), bool)
        bits = SIMPLE_BITS_OF_HALVES if np.asarray(values).dtype.itemsize == 2 else SIMPLE_BITS
        wide = np.asarray(values, dtype=np.float64)
        mantissa, _ = np.frexp(wide)
        scaled = mantissa * 2.0**bits
        unknown = np.isfinite(wide) & (scaled != np.rint(scaled)) & ~np.isin(np.abs(wide), _LARGEST)
        if not unknown.any() and not self._folds:
            return np.asarray(unknown)
        for candidate in (wide, -wide):
            found = self._member(candidate)
            unknown &= ~found
        if np.asarray(values).dtype.itemsize == 2 and (unknown.any() or self._folds):
            # Two-byte types have so few numbers that a computed one is often found among the source's by chance, or is
            # rounded back to the number that it was computed from.
            return np.asarray(np.isfinite(wide) & (wide != 0))
        return np.asarray(unknown)

    def _member(self, wide: Array) -> Array:
        if self._sorted.size == 0:
            return np.zeros(wide.shape, bool)
        place = np.minimum(np.searchsorted(self._sorted, wide), self._sorted.size - 1)
        return np.asarray(self._sorted[place] == wide)
