"""Keeps what nodes compute, up to a limit of memory."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueport.core.trace import TracedNode, TracedRun
from trueport.oracle.floor import elementwise_floor

Array = NDArray[Any]


class Keeper:
    """Sees a run without noise, then noisy ones.

    Args:
        limit_bytes: for the values of one run.
    """

    def __init__(self, limit_bytes: int) -> None:
        self._limit = limit_bytes
        self._taken = 0
        self._nodes: list[TracedNode] = []
        self._values: dict[str, Array] = {}
        self._noisy: dict[str, list[Array]] = {}
        self._left_out = 0

    def main(self, node: TracedNode, outputs: list[Any]) -> list[Any]:
        """Keeps the outputs of a node of the run without noise."""
        self._nodes.append(node)
        for name, value in zip(node.outputs, outputs, strict=False):
            if not name or not isinstance(value, np.ndarray) or value.dtype.kind not in "biufc":
                continue
            if self._taken + value.nbytes > self._limit:
                self._left_out += 1
                continue
            self._taken += value.nbytes
            self._values[name] = value
        return outputs

    def noisy(self, node: TracedNode, outputs: list[Any]) -> list[Any]:
        """Keeps the floating-point outputs of a noisy run where they have the shape that they have without noise."""
        for name, value in zip(node.outputs, outputs, strict=False):
            kept = self._values.get(name)
            if kept is not None and kept.dtype.kind in "fc" and np.shape(value) == kept.shape:
                self._noisy.setdefault(name, []).append(value)
        return outputs

    def run(self, outputs: tuple[str, ...], constants: frozenset[str]) -> TracedRun:
        """Returns what was kept."""
        floors = {name: elementwise_floor(self._values[name], runs) for name, runs in self._noisy.items()}
        return TracedRun(tuple(self._nodes), self._values, floors, outputs, constants, self._left_out)
