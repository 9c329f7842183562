"""Which values an input may hold: what the operators that read it accept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum


class DomainKind(StrEnum):
    """What the values of an input mean to the operators that read them."""

    RANGE = "range"
    INDEX = "index"
    LENGTH = "length"
    MASK = "mask"
    GRID = "grid"
    SETTING = "setting"


@dataclass(frozen=True)
class Domain:
    """The values that an input may hold.

    Attributes:
        kind: what they mean; a `SETTING` decides shapes or the meaning of an operator (axes, sizes, a mode).
        low: least value, inclusive, or None.
        high: largest value, inclusive, or None.
        high_symbol: where the largest value is the size of a dynamic axis: its symbol; the value is `size + offset`.
        high_offset: see `high_symbol`.
        gap: values nearer to zero than this are not allowed (denominators); 0 for none.
        fixed: the values are never drawn anew.
        values: the only values allowed, or () for all.
        default: for a fixed one: the values of the example, flat; a name stands for the size of that symbol.

    >>> Domain(low=0.0, high=1.0).joined(Domain(low=0.5)).low
    0.5
    """

    kind: DomainKind = DomainKind.RANGE
    low: float | None = None
    high: float | None = None
    high_symbol: str | None = None
    high_offset: int = 0
    gap: float = 0.0
    fixed: bool = False
    values: tuple[float, ...] = ()
    default: tuple[int | float | str, ...] | None = None

    def bounds(self, sizes: Mapping[str, int]) -> tuple[float | None, float | None]:
        """Returns the least and the largest value when the dynamic axes have these sizes; None where there is none.

        The largest is never below the least, because an axis may be empty.
        """
        high = self.high
        if self.high_symbol is not None and self.high_symbol in sizes:
            by_size = float(sizes[self.high_symbol] + self.high_offset)
            high = by_size if high is None else min(high, by_size)
        if high is not None and self.low is not None:
            high = max(high, self.low)
        return self.low, high

    def at(self, sizes: Mapping[str, int]) -> Domain:
        """Returns the domain with the size of its symbol put in, where that is among `sizes`."""
        if self.high_symbol not in sizes:
            return self
        return replace(self, high=self.bounds(sizes)[1], high_symbol=None, high_offset=0)

    def joined(self, other: Domain) -> Domain:
        """Returns the domain of an input that two operators read: what both accept; a fixed one wins."""
        if self.fixed or other.fixed:
            return self if self.fixed else other
        lows = [d.low for d in (self, other) if d.low is not None]
        highs = [d.high for d in (self, other) if d.high is not None]
        named = self if self.high_symbol is not None else other
        return replace(
            self if self.kind is not DomainKind.RANGE else other,
            low=max(lows, default=None),
            high=min(highs, default=None),
            high_symbol=named.high_symbol,
            high_offset=named.high_offset,
            gap=max(self.gap, other.gap),
            values=self.values or other.values,
        )
