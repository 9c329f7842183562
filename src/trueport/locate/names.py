"""Whether equal names mean equal things: a converter that numbers its values anew gives old names to other values.

It shows at integers and truth values, which are equal or not: one differs from the source's value of its name, is
another value of the source, and what the source has under the name is found elsewhere in the candidate. One such value
is enough; names then connect only what is equal anyway.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueport.core.trace import Follow, See, TracedNode, TracedRun
from trueport.locate.sameness import same_within

Array = NDArray[Any]
_MARK = " (numbered anew)"
_Key = tuple[str, tuple[int, ...], bytes]


class NameCheck:
    """Watches one run of a candidate, and keeps none of its values.

    Args:
        good: a run of the source.
    """

    def __init__(self, good: TracedRun) -> None:
        self._good = good
        self._source = {key for value in good.values.values() if (key := _key(value)) is not None}
        self._candidate: set[_Key] = set()
        self._other: set[str] = set()
        self._moved: list[str] = []

    def see(self, node: TracedNode, outputs: list[Any]) -> list[Any]:
        """Takes note of a node and leaves its outputs alone."""
        for name, value in zip(node.outputs, outputs, strict=False):
            if not isinstance(value, np.ndarray):
                continue
            key = _key(value)
            if key is not None:
                self._candidate.add(key)
            want = self._good.values.get(name)
            if want is None or same_within(want, value, self._good.floors.get(name)):
                continue
            self._other.add(name)
            if key in self._source:
                self._moved.append(name)
        return outputs

    @property
    def numbered_anew(self) -> bool:
        """Whether names were given to other values."""
        return any(_key(self._good.values[name]) in self._candidate for name in self._moved)

    def following(self, follow: Follow) -> Follow:
        """Returns what runs the candidate, with names that may mean something else marked as new ones."""
        if not self.numbered_anew:
            return follow

        def run(see: See, draw: int | None) -> list[Any]:
            return follow(lambda node, outputs: see(self._node(node), outputs), draw)

        return run

    def marked(self, run: TracedRun) -> TracedRun:
        """Returns a run of the candidate with the same marks."""
        if not self.numbered_anew:
            return run
        return TracedRun(
            tuple(map(self._node, run.nodes)),
            {self._mark(name): value for name, value in run.values.items()},
            {self._mark(name): floor for name, floor in run.floors.items()},
            tuple(map(self._mark, run.outputs)),
            frozenset(map(self._mark, run.constants)),
            run.left_out,
        )

    def _node(self, node: TracedNode) -> TracedNode:
        return replace(
            node, inputs=tuple(map(self._mark, node.inputs)), outputs=tuple(map(self._mark, node.outputs))
        )  # fmt: skip

    def _mark(self, name: str) -> str:
        return f"{name}{_MARK}" if name in self._other else name


def _key(value: Array) -> _Key | None:
    """What an integer or truth value is; None for others, and for single numbers, which are equal by chance."""
    if value.dtype.kind not in "biu" or value.size <= 1:
        return None
    return "b" if value.dtype.kind == "b" else "i", value.shape, value.astype(np.int64).tobytes()
