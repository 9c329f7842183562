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
LARGE = 65_536
"""From so many elements on a sample of `SAMPLE` may say that a tensor is computed altogether."""
SAMPLE = 4_096


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
    def _sizes(self) -> dict[int, list[Array]]:
        """The source's tensors by their number of elements."""
        sizes: dict[int, list[Array]] = {}
        for array in self._arrays:
            sizes.setdefault(array.size, []).append(array)
        return sizes

    @cached_property
    def _sums(self) -> dict[int, list[int]]:
        """Filled on the way: number of elements -> sum of the bits of each of the source's tensors of that size."""
        return {}

    def _is_rearranged(self, values: Array) -> bool:
        """Whether the values are those of one tensor of the source in another order: a transposed weight."""
        size = values.size
        same = self._sizes.get(size, [])
        if not same:
            return False
        if size not in self._sums:
            self._sums[size] = [_bit_sum(a) for a in same]
        wanted = _bit_sum(values)
        pairs = zip(same, self._sums[size], strict=True)
        near = [a for a, total in pairs if total == wanted and a.dtype == values.dtype]
        if not near:
            return False
        ascending = digest(np.sort(values, axis=None))
        return any(digest(np.sort(a, axis=None)) == ascending for a in near)

    @cached_property
    def _magnitudes(self) -> tuple[Array, Array]:
        """All numbers without their sign in ascending order: those that float32 holds, and the others."""
        narrow = [np.abs(a.astype(np.float32)).ravel() for a in self._arrays if a.dtype.name in _WITHIN_FLOAT32]
        wide = [np.abs(a.astype(np.float64)).ravel() for a in self._arrays if a.dtype.name == "float64"]
        return _in_order(narrow, np.float32), _in_order([*wide, np.abs(self._literals)], np.float64)

    def computed(self, values: Array) -> Array:
        """Returns True where a number is neither the source's own (up to sign) nor a simple one.

        The cost is that of sorting the values; the source's numbers are sorted once, and only when a tensor holds
        others than one of the source's tensors in some order. A large tensor most of whose numbers are computed, by a
        sample, is taken as computed altogether: among millions of weights a number is easily found by chance.

        Args:
            values: any shape, floating point.
        """
        held = np.asarray(values)
        # Two-byte types have so few numbers that a computed one is often found among the source's by chance, or is
        # rounded back to the number that it was computed from.
        crowded = held.dtype.itemsize == 2
        if not (crowded and self._folds) and (digest(held) in self._digests or self._is_rearranged(held)):
            return np.zeros(held.shape, bool)
        if held.size > LARGE and not crowded:
            few = held.ravel()[np.random.default_rng(0).integers(0, held.size, SAMPLE)]
            if 2 * np.count_nonzero(self._unknown(few, SIMPLE_BITS)) > SAMPLE:
                return np.asarray(np.isfinite(held) & (held != 0))
        unknown = self._unknown(held, SIMPLE_BITS_OF_HALVES if crowded else SIMPLE_BITS)
        if crowded and (unknown.any() or self._folds):
            wide = np.asarray(held, dtype=np.float64)
            return np.asarray(np.isfinite(wide) & (wide != 0))
        return unknown

    def _unknown(self, values: Array, simple_bits: int) -> Array:
        """Whether each number is neither the source's nor has so few bits that anybody may have written it."""
        wide = np.asarray(values, dtype=np.float64)
        mantissa, _ = np.frexp(wide)
        scaled = mantissa * 2.0**simple_bits
        unknown = np.asarray(np.isfinite(wide) & (scaled != np.rint(scaled)) & ~np.isin(np.abs(wide), _LARGEST))
        if unknown.any():
            unknown[unknown] = ~self._holds(np.abs(wide[unknown]))
        return unknown

    def rounds(self, number: float) -> bool:
        """Whether the source holds this number as float32 does, which is not the number itself."""
        rounded = float(np.float32(number))
        return rounded != number and bool(self._holds(np.asarray([abs(rounded), abs(number)])).any())

    def _holds(self, magnitudes: Array) -> Array:
        """Whether each of these numbers is one of the source's."""
        narrow, wide = self._magnitudes
        order = np.argsort(magnitudes)
        ascending = magnitudes[order]
        with np.errstate(over="ignore"):
            rounded = ascending.astype(np.float32)
        held = (_among(rounded, narrow) & (rounded == ascending)) | _among(ascending, wide)
        found = np.empty_like(held)
        found[order] = held
        return np.asarray(found)


def _bit_sum(values: Array) -> int:
    """Returns what no order changes and few other numbers share: which tensors are worth being sorted."""
    bits = np.ascontiguousarray(values).view(f"u{values.dtype.itemsize}")
    return int(np.sum(bits, dtype=np.uint64))


_WITHIN_FLOAT32 = frozenset({"float16", "bfloat16", "float32"})


def _in_order(parts: list[Array], dtype: type[np.floating[Any]]) -> Array:
    """Returns the numbers of all parts in ascending order."""
    joined = np.concatenate(parts) if parts else np.zeros(0, dtype)
    joined.sort()
    return joined


def _among(needles: Array, ascending: Array) -> Array:
    """Whether each needle is among the numbers; needles in ascending order keep the search within the caches."""
    if ascending.size == 0:
        return np.zeros(needles.shape, bool)
    place = np.minimum(np.searchsorted(ascending, needles), ascending.size - 1)
    return np.asarray(ascending[place] == needles)
