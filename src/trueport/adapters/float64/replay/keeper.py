"""Keeps what nodes compute, up to a limit of memory."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueport.core.trace import CONSTANTS_SHARE, TracedNode, TracedRun
from trueport.oracle.floor import Spread

Array = NDArray[Any]


class Keeper:
    """Sees a run without noise, then noisy ones.

    Args:
        limit_bytes: for all values with what is behind their floors.
        draws: noisy runs to come.
        constants: names of values that depend on no input; they get a part of the limit only, so that transposed
            weights do not crowd out what the model computes.
    """

    def __init__(self, limit_bytes: int, draws: int = 0, constants: frozenset[str] = frozenset()) -> None:
        self._left = {False: limit_bytes, True: int(limit_bytes * CONSTANTS_SHARE)}
        self._copies = 1 + min(draws, 2)
        self._constants = constants
        self._nodes: list[TracedNode] = []
        self._values: dict[str, Array] = {}
        self._spreads: dict[str, Spread] = {}
        self._left_out = 0

    def main(self, node: TracedNode, outputs: list[Any]) -> list[Any]:
        """Keeps the outputs of a node of the run without noise."""
        self._nodes.append(node)
        for name, value in zip(node.outputs, outputs, strict=False):
            if name and isinstance(value, np.ndarray) and value.dtype.kind in "biufc":
                self._keep(name, value)
        return outputs

    def _keep(self, name: str, value: Array) -> None:
        size = value.nbytes * (self._copies if value.dtype.kind in "fc" else 1)
        constant = name in self._constants
        if size > self._left[False] or (constant and size > self._left[True]):
            self._left_out += 1
            return
        self._left[False] -= size
        self._left[True] -= size if constant else 0
        base = value.base
        if isinstance(base, np.ndarray) and base.nbytes > 2 * value.nbytes:
            value = value.copy()  # a small part must not hold on to the whole that it was cut from
        self._values[name] = value

    def noisy(self, node: TracedNode, outputs: list[Any]) -> list[Any]:
        """Adds the floating-point outputs of a noisy run where they have the shape that they have without noise."""
        for name, value in zip(node.outputs, outputs, strict=False):
            kept = self._values.get(name)
            if kept is not None and kept.dtype.kind in "fc" and np.shape(value) == kept.shape:
                self._spreads.setdefault(name, Spread(kept)).add(value)
        return outputs

    def run(self, outputs: tuple[str, ...], constants: frozenset[str]) -> TracedRun:
        """Returns what was kept; to be called once."""
        floors = {name: self._spreads.pop(name).floor() for name in list(self._spreads)}
        return TracedRun(tuple(self._nodes), self._values, floors, outputs, constants, self._left_out)
