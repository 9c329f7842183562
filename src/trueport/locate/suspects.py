"""Which operator of a group is the likely one, where only the value at its end can be compared.

Operators that hand on their elements in another order or shape cannot change what the elements are. Where the elements
of a wrong value are no others than those that were expected, one of these is first; else one that computes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueport.core.trace import TracedNode

Array = NDArray[Any]
SAME = 1e-9
_MOVING = frozenset(
    {"identity", "reshape", "squeeze", "unsqueeze", "transpose", "permute", "view", "unsafeview", "t", "expand",
     "flatten", "contiguous", "clone", "alias", "dropout", "depthtospace", "spacetodepth", "numpyt", "expanddims",
     "readvariableop", "detach", "liftfresh", "copy", "snapshot", "noop", "tocopy", "getitem", "castlike"}
)  # fmt: skip


def moves_only(node: TracedNode) -> bool:
    """Whether an operator only hands on its elements, in another order or shape."""
    parts = node.operator.removeprefix("aten.").split(".")
    return parts[0].replace("_", "").lower() in _MOVING


def ordered(group: Sequence[TracedNode], expected: Array, got: Array) -> tuple[list[TracedNode], list[TracedNode]]:
    """Returns the suspects of a group, the likely one first, and the others.

    Args:
        group: in the order in which it is computed.
        expected: the value at its end.
        got: the wrong one.
    """
    computing = [n for n in reversed(group) if not moves_only(n)]
    moving = [n for n in reversed(group) if moves_only(n)]
    if not computing or not moving:
        return list(reversed(group)), []
    if got.shape != expected.shape or _same_elements(expected, got):
        return moving, computing
    return computing, moving


def _same_elements(a: Array, b: Array) -> bool:
    if a.dtype.kind not in "fc" or b.dtype.kind not in "fc":
        return bool(np.array_equal(np.sort(a, axis=None), np.sort(b, axis=None)))
    largest = float(np.max(np.abs(a), initial=0.0, where=np.isfinite(a)))
    x, y = np.sort(a, axis=None), np.sort(b, axis=None)
    return bool(np.isclose(x, y, rtol=SAME, atol=SAME * largest, equal_nan=True).all())
