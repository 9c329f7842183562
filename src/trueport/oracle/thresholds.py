"""The frozen thresholds; how they were set stands in docs/explanation/oracle.md."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Thresholds:
    """From which score a difference counts, and what a verdict of `faithful` needs.

    Attributes:
        meaning: distance over floor in the meaning lane.
        arithmetic: distance over floor in the arithmetic lane.
        margin: distance to a jump, in local floors, within which an element is tainted.
        comparable: least share of each output's elements that must be comparable.
        resolution: largest relative error that may stay unseen, in a source of single precision or more.
    """

    meaning: float = 32.0
    arithmetic: float = 32.0
    margin: float = 8.0
    comparable: float = 0.95
    resolution: float = 1e-3

    def resolution_of(self, unit_roundoff: float) -> float:
        """Returns the largest relative error that may stay unseen in a source of this precision.

        Nothing finer than a few dozen last places of the source's own type can be asked for.
        """
        return max(self.resolution, 2 * self.meaning * unit_roundoff)


THRESHOLDS = Thresholds()
