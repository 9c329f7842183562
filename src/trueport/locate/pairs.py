"""Which value of a candidate stands for which of its source: by name, and by what it is where names are lost."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueport.core.trace import TracedNode, TracedRun
from trueport.locate.sameness import same_within
from trueport.oracle.thresholds import THRESHOLDS

Array = NDArray[Any]

_SUM_NOISE = 1e-12
"""What the sum of a value's elements may be off by, relative to the sum of their sizes."""


class Pairing:
    """Watches one run of a candidate and pairs its values with the source's as they come; keeps none of them.

    Args:
        good: a run of the source.
        constants: names of the candidate's values that depend on no input; they are paired by name only.
    """

    def __init__(self, good: TracedRun, constants: frozenset[str] = frozenset()) -> None:
        self.nodes: list[TracedNode] = []
        self._good = good
        self._constants = constants
        self._named: dict[str, str] = {}
        self._alike: dict[str, list[str]] = {}
        self._table: dict[tuple[int, ...], _Shelf] = {}
        for name, value in good.values.items():
            if name not in good.constants and value.size > 1 and value.dtype.kind in "fc":
                self._table.setdefault(value.shape, _Shelf()).put(name, value, good.floors.get(name))

    def see(self, node: TracedNode, outputs: list[Any]) -> list[Any]:
        """Takes note of a node and leaves its outputs alone."""
        self.nodes.append(node)
        for name, value in zip(node.outputs, outputs, strict=False):
            if name and name in self._good.values:
                self._named[name] = name
            elif name and name not in self._constants and isinstance(value, np.ndarray):
                self._match(name, value)
        return outputs

    def pairs(self) -> dict[str, str]:
        """Returns value of the candidate -> value of the source; one that a name connects is not given twice."""
        taken = set(self._named.values())
        found = {name: next((o for o in others if o not in taken), None) for name, others in self._alike.items()}
        return self._named | {name: other for name, other in found.items() if other is not None}

    def _match(self, name: str, value: Array) -> None:
        shelf = self._table.get(value.shape)
        if shelf is None or value.size <= 1 or value.dtype.kind not in "fc" or not np.isfinite(value).all():
            return
        near = [o for o in shelf.near(value) if same_within(self._good.values[o], value, self._good.floors.get(o))]
        if near:
            self._alike[name] = near


class _Shelf:
    """Values of one shape, found by the sums of their elements."""

    def __init__(self) -> None:
        self._names: list[str] = []
        self._sums: list[complex] = []
        self._slack: list[float] = []

    def put(self, name: str, value: Array, floor: Array | None) -> None:
        sizes = float(np.abs(value).sum())
        if not np.isfinite(sizes):
            return
        noise = 0.0 if floor is None else float(floor.sum())
        self._names.append(name)
        self._sums.append(complex(value.sum()))
        self._slack.append(sizes * (2.0**-46 + _SUM_NOISE) + THRESHOLDS.meaning * noise)

    def near(self, value: Array) -> list[str]:
        """Returns the names of values that may be equal: no equal one is missing."""
        away = np.abs(np.array(self._sums) - complex(value.sum()))
        return [self._names[i] for i in np.nonzero(away <= np.array(self._slack))[0]]
