"""Which elements of the source's outputs can be compared at all.

Not those that hang on a decision that rounding takes, and not those that the source's own run does not confirm: there
the floor or the float64 run is not to be trusted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueport.oracle.compare import DECISION_FLOORS, ReferenceOutput
from trueport.oracle.thresholds import THRESHOLDS
from trueport.oracle.units import FLOAT_TYPES

Array = NDArray[Any]


def unstable_elements(value: Array, others: Sequence[Array], floor: Array, runs: Sequence[Array]) -> Array:
    """Returns where an output depends on a decision that rounding takes, or lies on the edge of its type's range.

    Args:
        value: the output in float64, any shape.
        others: the output under the other decisions, in the same shape.
        floor: its noise.
        runs: the output with noise of its own type; none for those that have no noise.

    Returns:
        booleans, the shape of `value`.
    """
    unstable = np.zeros(value.shape, bool)
    with np.errstate(all="ignore"):
        for away in others:
            if value.dtype.kind in "fc":
                same = (away == value) | (np.isnan(away) & np.isnan(value))
                unstable |= ~same & ~(np.abs(away - value) <= DECISION_FLOORS * floor + 2.0**-48 * np.abs(value))
            else:
                unstable |= np.asarray(away != value)
        for run in runs:
            unstable |= np.isfinite(run) != np.isfinite(value)
    return unstable


def trusted(output: ReferenceOutput, real: Array) -> ReferenceOutput:
    """Returns the output with elements marked as unstable where the plain run lies outside of the floor."""
    if output.value.shape != real.shape or output.draws == 0 or output.dtype not in FLOAT_TYPES:
        return output
    with np.errstate(all="ignore"):
        wide = real.astype(output.value.dtype)
        kind = FLOAT_TYPES[output.dtype]
        allowed = (
            THRESHOLDS.arithmetic * output.arithmetic_floor + np.abs(output.value) * kind.unit_roundoff + kind.flushed
        )
        same = (np.isnan(wide) & np.isnan(output.value)) | (wide == output.value)
        confirmed = same | (np.abs(wide - output.value) <= allowed)
    return output if confirmed.all() else replace(output, unstable=output.unstable | ~confirmed)
