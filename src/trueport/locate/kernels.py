"""Which kernel of a runtime is wrong: every node judged on the runtime's own values.

A node is given what the runtime gave it, in float64. What the runtime made of it must lie within the node's own
rounding noise; where it does not, the node introduces an error. A node that is right by itself and takes a value that
such a node spoilt only propagates it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from trueport.core.taxonomy import Role
from trueport.oracle.compare import Comparison, ReferenceOutput, compare_arithmetic
from trueport.oracle.floor import elementwise_floor
from trueport.oracle.noise import ALARM, SCREEN
from trueport.oracle.thresholds import THRESHOLDS
from trueport.oracle.units import float_type

Array = NDArray[Any]

_NEARLY_LARGEST = 0.9


class Step(Protocol):
    """A node on the runtime's own values; the adapter's `LocalStep`."""

    @property
    def name(self) -> str:
        """Of the node."""

    @property
    def operator(self) -> str:
        """Its type."""

    @property
    def reads(self) -> tuple[str, ...]:
        """Names of the values that it takes."""

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the values that it makes; '' for one left out."""

    @property
    def types(self) -> tuple[str, ...]:
        """Declared element types of the outputs; '' where unknown."""

    @property
    def exact(self) -> Sequence[Any] | None:
        """Its outputs in float64, None where they could not be computed."""

    @property
    def got(self) -> Sequence[Any]:
        """What the runtime computed."""

    @property
    def error(self) -> Exception | None:
        """What the float64 evaluation raised."""

    @property
    def random(self) -> bool:
        """Whether it draws random numbers."""

    @property
    def noise(self) -> Callable[[int], list[list[Any]]]:
        """Number of draws -> outputs with the node's own rounding noise."""

    @property
    def pushed(self) -> Callable[[], list[list[Any]]]:
        """Outputs where what the node decides by is moved by its own rounding."""

    @property
    def undefined(self) -> Callable[[], Array | None]:
        """Elements of the first output that the specification leaves open, or None."""


@dataclass(frozen=True)
class NodeJudgement:
    """A node with a part in an error.

    Attributes:
        name: of the node.
        operator: its type.
        output: name of its worst output.
        score: distance over the node's own floor, at most `LARGEST_SCORE`.
        role: introduces or propagates.
        order: its place in the graph.
        comparison: of the worst output: what float64 gives on the runtime's own inputs, and what the runtime gave.
    """

    name: str
    operator: str
    output: str
    score: float
    role: Role
    order: int
    comparison: Comparison


@dataclass(frozen=True)
class KernelJudgement:
    """All nodes of a file.

    Attributes:
        nodes: those that introduce an error, the worst first, then those that propagate one, in order.
        judged: how many nodes were judged.
        unjudged: node -> why it could not be judged.
    """

    nodes: tuple[NodeJudgement, ...] = ()
    judged: int = 0
    unjudged: dict[str, str] = field(default_factory=dict)

    @property
    def introduced(self) -> tuple[NodeJudgement, ...]:
        """The nodes that introduce an error."""
        return tuple(n for n in self.nodes if n.role is Role.INTRODUCES)


def judge_kernels(steps: Iterable[Step]) -> KernelJudgement:
    """Returns which nodes introduce an error and which only pass one on.

    Args:
        steps: the nodes in the order of the graph; each is looked at once, before the next one is asked for.
    """
    found: list[NodeJudgement] = []
    unjudged: dict[str, str] = {}
    spoilt: set[str] = set()
    judged = 0
    for order, step in enumerate(steps):
        worst, why = _judge(step)
        if why:
            unjudged[step.name] = why
        judged += not why
        introduces = worst is not None and worst[1].different
        if introduces or spoilt & set(step.reads):
            spoilt.update(name for name in step.outputs if name)
            output, compared = worst if worst is not None else (step.outputs[0], Comparison(None, 0.0))
            role = Role.INTRODUCES if introduces else Role.PROPAGATES
            found.append(NodeJudgement(step.name, step.operator, output, compared.score, role, order, compared))
    first = sorted((n for n in found if n.role is Role.INTRODUCES), key=lambda n: (-n.score, n.order))
    return KernelJudgement((*first, *(n for n in found if n.role is Role.PROPAGATES)), judged, unjudged)


def _judge(step: Step) -> tuple[tuple[str, Comparison] | None, str]:
    """Returns the worst output with its comparison, and why outputs could not be judged ('' where all were)."""
    if step.random:
        return None, "draws random numbers"
    if step.exact is None:
        return None, f"no float64 value: {type(step.error).__name__}"
    worst: tuple[str, Comparison] | None = None
    left = ""
    for index, name in enumerate(step.outputs):
        if not name:
            continue
        if not _comparable(step, index):
            left = left or f"output '{name}' is no tensor of a type that can be compared"
            continue
        compared = _compared(step, index)
        if worst is None or compared.score > worst[1].score:
            worst = name, compared
    return worst, left


def _comparable(step: Step, index: int) -> bool:
    assert step.exact is not None
    exact, got = step.exact[index] if index < len(step.exact) else None, step.got[index]
    return (
        isinstance(exact, np.ndarray)
        and isinstance(got, np.ndarray)
        and not got.dtype.name.startswith(("float8e", "float6e", "float4e"))
    )


def _compared(step: Step, index: int) -> Comparison:
    """Compares one output, with more noise the longer it looks wrong."""
    assert step.exact is not None
    exact, got = step.exact[index], step.got[index]
    if _equal(exact, got, step.types[index]):
        return Comparison(None, 0.0, compared=exact.size)
    compared = compare_arithmetic(_reference(step, index, [], []), got)
    if not compared.different or exact.shape != got.shape:
        return compared
    pushed = [np.asarray(run[index]) for run in step.pushed() if index < len(run)]
    for draws in (SCREEN.arithmetic, ALARM.arithmetic):
        runs = [np.asarray(run[index]) for run in step.noise(draws) if index < len(run)]
        compared = compare_arithmetic(_reference(step, index, runs, pushed), got)
        if not compared.different:
            break
    return compared


def _equal(exact: Array, got: Array, dtype: str) -> bool:
    """Whether a value is exactly what float64 gives, as all that is only moved is; spares large ones the rest."""
    if exact.shape != got.shape or got.dtype.name != dtype or exact.dtype.kind not in "biuf":
        return False
    return bool(np.array_equal(exact, got.astype(exact.dtype, copy=False), equal_nan=exact.dtype.kind == "f"))


def _reference(step: Step, index: int, runs: list[Array], pushed: list[Array]) -> ReferenceOutput:
    assert step.exact is not None
    exact, got = step.exact[index], step.got[index]
    dtype = step.types[index] if index < len(step.types) else ""
    if exact.dtype.kind in "OUS":
        exact, dtype = exact.astype(object), got.dtype.name
    dtype = dtype or got.dtype.name
    same = [r for r in (*runs, *pushed) if r.shape == exact.shape]
    floor = np.zeros(exact.shape)
    if exact.dtype.kind in "fc":
        floor = elementwise_floor(exact, [r for r in runs if r.shape == exact.shape])
    moved = pushed if exact.dtype.kind in "fc" else same
    others = tuple(r for r in moved if r.shape == exact.shape)
    unstable = (
        np.logical_or.reduce([_differs(o, exact, floor) for o in others]) if others else np.zeros(exact.shape, bool)
    )
    if len(others) < len(moved):
        unstable = np.ones(exact.shape, bool)
    unstable = np.asarray(unstable) | _near_overflow(exact, got, floor, dtype)
    undefined = step.undefined() if index == 0 else None
    if undefined is not None and undefined.shape == exact.shape:
        unstable = unstable | undefined
    return ReferenceOutput(step.outputs[index], dtype, exact, np.zeros(exact.shape), floor, unstable, len(runs), others)


def _differs(other: Array, exact: Array, floor: Array) -> Array:
    if exact.dtype.kind not in "fc":
        return np.asarray(other != exact)
    with np.errstate(invalid="ignore"):
        return np.asarray(~(np.abs(other - exact) <= THRESHOLDS.arithmetic * floor) & (other != exact))


def _near_overflow(exact: Array, got: Array, floor: Array, dtype: str) -> Array:
    """Where it is rounding that makes a value infinite or keeps it finite."""
    kind = float_type(dtype)
    if kind is None or exact.dtype.kind != "f" or exact.shape != got.shape:
        return np.zeros(exact.shape, bool)
    came = got.astype(np.float64)
    with np.errstate(invalid="ignore"):
        kept = np.isinf(exact) & (np.abs(came) >= _NEARLY_LARGEST * kind.largest) & (np.sign(came) == np.sign(exact))
        lost = np.isinf(came) & (np.abs(exact) + THRESHOLDS.arithmetic * floor >= kind.largest)
        return np.asarray((kept & np.isfinite(came)) | (lost & np.isfinite(exact) & (np.sign(came) == np.sign(exact))))
