"""What the operators of one framework are like, as far as rounding and decisions are concerned."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray

from trueport.adapters.float64.replay.operation import Operation

Array = NDArray[Any]
Terms = Callable[[Operation, "list[Any]", Array], "int | Array"]
"""(operation, arguments, output) -> how many terms are summed into one element, or into each."""
Squares = Callable[[Operation, "list[Any]", Array], "tuple[int, Array]"]
"""(operation, arguments, output) -> how many terms are summed into one element, and the sum of their squares."""
Moved = Callable[[Operation, "list[Any]", float], "list[Any]"]
"""(operation, arguments, relative error) -> arguments that stand for what the operator computes for itself with it."""


@dataclass(frozen=True)
class Selection:
    """An operator that picks elements by their order along an axis.

    Attributes:
        axis: along which it picks, for a call; negative counts from the end.
        largest: whether large elements come first.
        values: number of the output that holds the picked elements, or None.
        indices: number of the output that holds their places.
        first_of_ties: whether the operator says which of equal elements it takes; else any order is right.
    """

    axis: Callable[[Operation, list[Any]], int]
    largest: Callable[[Operation], bool]
    values: int | None = None
    indices: int = 0
    first_of_ties: bool = True


def _always(operation: Operation, arguments: list[Any]) -> bool:
    del operation, arguments
    return True


@dataclass(frozen=True)
class Jump:
    """A discontinuous operator: elements nearer to the jump than a few local floors may fall on either side.

    Attributes:
        when: whether a call is discontinuous at all (a cast to an integer is, one to a float is not).
        selection: how it picks, for operators that pick by order.
        continuous: the result for noisy arguments under the decisions of the main run, from (operation, main arguments,
            main outputs, noisy arguments); None where the result is nothing but decisions.
        undefined: where the specification does not say what the result is, from (operation, arguments).
        inner: places by which the operator's own arithmetic may be off before it decides (a quantization divides).
    """

    when: Callable[[Operation, list[Any]], bool] = _always
    selection: Selection | None = None
    continuous: Callable[[Operation, list[Any], list[Any], list[Any]], list[Any]] | None = None
    undefined: Callable[[Operation, list[Any]], Array | None] | None = None
    inner: float = 0.0


@dataclass(frozen=True)
class Dialect:
    """Tables by operator name.

    Attributes:
        selects: whether every output element is one of the inputs' or exact in its type, so that nothing is rounded.
        contractions: sums of products; evaluated on squared operands they give the sum of the squared terms.
        means: those among them that divide by the number of terms.
        transforms: sums of the operands with factors of size one that the operator computes for itself, which are off
            by an absolute error: each with the number of terms and the sum of their squares.
        composite: operators whose inner sums and differences amplify the rounding of their inputs.
        derived: operators that compute coordinates for themselves, with the arguments that spell these out.
        softmax: as good as their exponent's argument.
        absolute: operators whose inner values are near one whatever they give (a gate, the sum of exponentials under a
            logarithm), with the absolute error that this leaves, in units of u.
        additive: sums and differences of two operands.
        correctly_rounded: operators that IEEE 754 rounds correctly.
        jumps: discontinuous operators.
        constants_inside: operators whose definition holds numbers that no float32 is equal to, with these numbers.
    """

    selects: Callable[[Operation], bool]
    contractions: Mapping[str, Terms]
    means: frozenset[str] = frozenset()
    transforms: Mapping[str, Squares] = field(default_factory=dict)
    composite: frozenset[str] = frozenset()
    derived: Mapping[str, Moved] = field(default_factory=dict)
    softmax: frozenset[str] = frozenset()
    absolute: Mapping[str, float] = field(default_factory=dict)
    additive: frozenset[str] = frozenset()
    correctly_rounded: frozenset[str] = frozenset()
    jumps: Mapping[str, Jump] = field(default_factory=dict)
    constants_inside: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
