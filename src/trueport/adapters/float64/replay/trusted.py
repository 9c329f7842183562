"""What the source's own run does not confirm is not to be trusted: floor or replay are wrong there."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueport.oracle.compare import ReferenceOutput
from trueport.oracle.thresholds import THRESHOLDS
from trueport.oracle.units import FLOAT_TYPES

Array = NDArray[Any]


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
