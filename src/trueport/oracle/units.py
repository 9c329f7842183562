"""Unit roundoff and range of the floating-point types that a model may use.

Unit roundoff u is half the distance between 1 and the next larger number (Higham, Accuracy and Stability of Numerical
Algorithms, 2nd ed., section 2.1).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class FloatType:
    """A binary floating-point type.

    Attributes:
        name: of the type.
        unit_roundoff: half the distance from 1 to the next larger number.
        largest: the largest finite number.
        smallest: the smallest positive (subnormal) number.
        flushed: magnitude below which runtimes may put zero: kernels of the wide types flush subnormal numbers.
    """

    name: str
    unit_roundoff: float
    largest: float
    smallest: float
    flushed: float

    @property
    def overflow(self) -> float:
        """The magnitude from which rounding to nearest gives infinity."""
        return self.largest + math.ldexp(self.unit_roundoff, math.frexp(self.largest)[1] - 1)

    @property
    def underflow(self) -> float:
        """The magnitude up to which rounding to nearest gives zero."""
        return self.smallest / 2


FLOAT_TYPES = {
    "float64": FloatType("float64", 2.0**-53, 1.7976931348623157e308, 5e-324, 2.0**-1022),
    "float32": FloatType("float32", 2.0**-24, 3.4028234663852886e38, 2.0**-149, 2.0**-126),
    "float16": FloatType("float16", 2.0**-11, 65504.0, 2.0**-24, 2.0**-24),
    "bfloat16": FloatType("bfloat16", 2.0**-8, 3.3895313892515355e38, 2.0**-133, 2.0**-126),
}
"""By the name of the type; complex types have the unit of their components."""
FLOAT_TYPES["complex64"] = FLOAT_TYPES["float32"]
FLOAT_TYPES["complex128"] = FLOAT_TYPES["float64"]


def float_type(dtype: str) -> FloatType | None:
    """Returns the floating-point type of this name, or None for integers, booleans and everything else."""
    return FLOAT_TYPES.get(dtype)


def real_dtype(name: str) -> np.dtype[Any]:
    """Returns the NumPy type of this name; bfloat16 comes from ml_dtypes."""
    if name == "bfloat16":
        import ml_dtypes

        return np.dtype(ml_dtypes.bfloat16)  # type: ignore[no-any-return]  # ml_dtypes is not typed
    return np.dtype(name)
