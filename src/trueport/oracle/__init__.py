"""The two-lane oracle: how far apart two results are, measured in what rounding alone explains.

Knows arrays, never a framework. `noise` says how large the rounding of one operator is, `floor` turns the spread of
runs with that noise into a tolerance for each element, `compare` judges a candidate against a reference.
"""

from trueport.oracle.compare import Comparison, ReferenceOutput, compare_arithmetic, compare_fixed, compare_meaning
from trueport.oracle.floor import elementwise_floor
from trueport.oracle.noise import Draws
from trueport.oracle.thresholds import THRESHOLDS, Thresholds

__all__ = [
    "THRESHOLDS",
    "Comparison",
    "Draws",
    "ReferenceOutput",
    "Thresholds",
    "compare_arithmetic",
    "compare_fixed",
    "compare_meaning",
    "elementwise_floor",
]
