"""Which node of the source a converted node stands for, from the values of the right conversion.

A value of the converted program that the source has too stands for the source's first node that computes it. A value
in the middle of what one operator became belongs to the next values that both have.
"""

from __future__ import annotations

import numpy as np

from trueport.core.trace import TracedRun

CLOSE = 1e-6
"""Relative difference up to which values are equal: a converter folds constants in float32."""


def source_nodes(source: TracedRun, converted: TracedRun, value: str) -> frozenset[str]:
    """Returns the names of the source's nodes that a converted value stands for; none where there is none."""
    takers: dict[str, list[str]] = {}
    for node in converted.nodes:
        for name in node.inputs:
            takers.setdefault(name, []).extend(o for o in node.outputs if o)
    found: set[str] = set()
    waiting, seen = [value], {value}
    while waiting:
        name = waiting.pop(0)
        match = _first(source, converted, name)
        if match is not None:
            found.add(match)
            continue
        further = [n for n in takers.get(name, ()) if n not in seen]
        seen.update(further)
        waiting += further
    return frozenset(found)


def before(run: TracedRun, nodes: frozenset[str]) -> frozenset[str]:
    """Returns the names of the nodes from which any of these is computed."""
    made = {output: node for node in run.nodes for output in node.outputs}
    waiting = [name for node in run.nodes if node.name in nodes for name in node.inputs]
    found: set[str] = set()
    while waiting:
        node = made.get(waiting.pop())
        if node is not None and node.name not in found:
            found.add(node.name)
            waiting += node.inputs
    return frozenset(found) - nodes


def _first(source: TracedRun, converted: TracedRun, name: str) -> str | None:
    value = converted.values.get(name)
    if value is None:
        return None
    for node in source.nodes:
        for output in node.outputs:
            other = source.values.get(output)
            if other is not None and other.shape == value.shape and _close(other, value):
                return node.name
    return None


def _close(a: np.ndarray, b: np.ndarray) -> bool:
    if a.dtype.kind not in "fc" or b.dtype.kind not in "fc":
        return bool(np.array_equal(a, b))
    largest = float(np.max(np.abs(a), initial=0.0, where=np.isfinite(a)))
    return bool(np.allclose(a, b, rtol=CLOSE, atol=CLOSE * largest, equal_nan=True))
