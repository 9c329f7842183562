"""How many terms an operator sums into one element, for those sums that all frameworks have."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueport.adapters.float64.replay.operation import Operation

Array = NDArray[Any]


def reduced(operation: Operation, arguments: list[Any], value: Array) -> int:
    """Returns how many elements of the first argument there are for each of the result."""
    del operation
    return max(1, int(arguments[0].size) // max(value.size, 1))


def summed_so_far(operation: Operation, arguments: list[Any], value: Array) -> Array:
    """Returns for each element of a running sum how many terms are in it: the running sum of ones."""
    del value
    return np.asarray(operation.apply([np.ones(arguments[0].shape), *arguments[1:]])[0])
