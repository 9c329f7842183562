"""Rounding noise in a graph: what its operators may lose, in any type.

The size of an operator's noise is a unit in the last place, the error of another order of summation, or, for operators
that do much at once, what a few units of noise in their inputs do to their result, whichever is largest. An operator
that IEEE 754 rounds correctly and whose result is exact here makes no noise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueport.adapters.float64.replay.dialect import Dialect
from trueport.adapters.float64.replay.exactness import is_float, rounds_nothing
from trueport.adapters.float64.replay.operation import Operation
from trueport.oracle.noise import draw, summation_noise
from trueport.oracle.units import FLOAT_TYPES, FloatType

Array = NDArray[Any]


@dataclass(frozen=True)
class Budget:
    """What a runtime's kernel may be off by: `places` units in the last place, and an absolute error in units of u."""

    places: float = 1.0
    absolute: float = 0.0


NO_BUDGETS: Mapping[str, Budget] = {}
_COMPOSITE_PLACES = 8.0


class Rounding:
    """Perturbs outputs; a `Follower`.

    Args:
        rng: source of the noise.
        dialect: what the operators are like.
        coherent: one sign for each tensor instead of independent noise.
        wide: noise of a float64 evaluation instead of the declared type's.
        budgets: what a runtime's kernels may be off by, per operator.
    """

    def __init__(
        self,
        rng: np.random.Generator,
        dialect: Dialect,
        *,
        coherent: bool,
        wide: bool,
        budgets: Mapping[str, Budget] = NO_BUDGETS,
    ) -> None:
        self._rng = rng
        self._dialect = dialect
        self._coherent = coherent
        self._wide = wide
        self._budgets = budgets

    def __call__(self, operation: Operation, arguments: list[Any], outputs: list[Any]) -> list[Any]:
        """Returns the outputs with noise; what is not finite, not of floating point or selected stays as it is."""
        if self._dialect.selects(operation):
            return outputs
        return [self._noisy(operation, arguments, i, value) for i, value in enumerate(outputs)]

    def _noisy(self, operation: Operation, arguments: list[Any], index: int, value: Any) -> Any:
        if not isinstance(value, np.ndarray) or value.dtype.kind not in "fc" or value.size == 0:
            return value
        kind = FLOAT_TYPES.get(_part(operation.output_types[index]))
        if kind is None:
            return value
        if operation.operator in self._dialect.correctly_rounded and rounds_nothing(
            operation, arguments, value, kind, self._dialect, self._accumulator(operation, kind)
        ):
            return value
        if value.dtype.kind == "c":
            noise = np.abs(value) * (2 * (FLOAT_TYPES["float64"] if self._wide else kind).unit_roundoff)
            moved = [draw(self._rng, np.nan_to_num(noise), coherent=self._coherent) for _ in range(2)]
            return np.asarray(value + moved[0] + 1j * moved[1])
        noise = self._size(operation, arguments, index, value, kind)
        noise = np.where(np.isfinite(noise) & np.isfinite(value), noise, 0.0)
        return np.asarray(value + draw(self._rng, noise, coherent=self._coherent))

    def _unit(self, operation: Operation, kind: FloatType) -> float:
        # What was computed in its own type has the noise of that type in either lane.
        wide = self._wide and not operation.coarse
        return FLOAT_TYPES["float64"].unit_roundoff if wide else kind.unit_roundoff

    def _accumulator(self, operation: Operation, kind: FloatType) -> float:
        return min(self._unit(operation, kind), FLOAT_TYPES["float32"].unit_roundoff)

    def _size(self, operation: Operation, arguments: list[Any], index: int, value: Array, kind: FloatType) -> Array:
        operator, dialect = operation.operator, self._dialect
        unit, accumulator = self._unit(operation, kind), self._accumulator(operation, kind)
        budget = self._budgets.get(operator, Budget())
        absolute = max(budget.absolute, dialect.absolute.get(operator, 0.0))
        noise = np.abs(value) * (unit * budget.places) + absolute * unit
        noise = noise + (kind.underflow if self._wide else kind.flushed)
        extra = self._summation(operation, arguments, index, value, accumulator)
        if extra is not None:
            noise = np.maximum(noise, extra)
        if operator in dialect.composite and not operation.nested:
            # Half precision is summed in single precision inside an operator.
            noise = np.maximum(noise, self._composite(operation, arguments, index, value, accumulator))
        if operator in dialect.softmax:
            # exp(x - max) is as good as its argument, which is rounded; never as good as x, which a mask may make huge.
            noise = noise + np.abs(value) * unit * (_COMPOSITE_PLACES + np.abs(np.log(np.abs(value) + 1e-300)))
        if operator in dialect.additive and len(arguments) == 2 and not operation.attributes.get("broadcast"):
            # A correctly rounded sum is off by no more than its smaller operand: a mask of -3e38 stays itself.
            noise = np.minimum(noise, np.minimum(np.abs(arguments[0]), np.abs(arguments[1])))
        return np.asarray(noise)

    def _summation(
        self, operation: Operation, arguments: list[Any], index: int, value: Array, unit: float
    ) -> Array | None:
        operator, dialect = operation.operator, self._dialect
        if index != 0 or operation.nested:
            return None
        if operator in dialect.transforms:
            length, power = dialect.transforms[operator](operation, arguments, value)
            factors = 2 * unit * np.sqrt(power)  # each is off by about a last place of one
            return np.asarray(np.maximum(summation_noise(value, power, length, unit), factors))
        if operator not in dialect.contractions:
            return None
        squared = [np.square(a) if is_float(a) else a for a in arguments]
        squares = np.asarray(operation.apply(squared)[0])
        terms = np.maximum(1, dialect.contractions[operator](operation, arguments, value))
        if operator in dialect.means:
            squares = squares / terms
        return summation_noise(value, squares, terms, unit)

    def _composite(self, operation: Operation, arguments: list[Any], index: int, value: Array, unit: float) -> Array:
        """What noise of a few units in every operand does to the result, and the error of what it sums inside."""
        size = _COMPOSITE_PLACES * unit
        derive = self._dialect.derived.get(operation.operator)
        spelled = arguments if derive is None else derive(operation, arguments, size)
        moved = [
            a * (1 + size * self._rng.standard_normal(a.shape)) if is_float(a) and a is given else a
            for a, given in zip(spelled, arguments, strict=True)
        ]
        other = operation.apply(moved)[index]
        if not isinstance(other, np.ndarray) or other.shape != value.shape:
            return np.zeros(value.shape)
        largest = max((a.size for a in arguments if is_float(a)), default=1)
        terms = max(1, largest // max(value.size, 1))
        return np.asarray(np.abs(other - value) + np.abs(value) * (unit * np.sqrt(terms) / 2))


def _part(dtype: str) -> str:
    """The type of the real and of the imaginary part."""
    return {"complex64": "float32", "complex128": "float64"}.get(dtype, dtype)


def noisy_runs(
    run: Callable[[Rounding, np.random.Generator], list[Any]],
    dialect: Dialect,
    *,
    draws: int,
    seed: Sequence[int],
    wide: bool,
    budgets: Mapping[str, Budget] = NO_BUDGETS,
) -> list[list[Any]]:
    """Returns `draws` runs, the even ones with independent and the odd ones with coherent noise."""
    return [noisy_run(run, dialect, number=k, seed=seed, wide=wide, budgets=budgets) for k in range(draws)]


def noisy_run(
    run: Callable[[Rounding, np.random.Generator], list[Any]],
    dialect: Dialect,
    *,
    number: int,
    seed: Sequence[int],
    wide: bool,
    budgets: Mapping[str, Budget] = NO_BUDGETS,
) -> list[Any]:
    """Returns the run of this number: with coherent noise where it is odd."""
    rng = np.random.default_rng([*seed, number, int(wide)])
    return run(Rounding(rng, dialect, coherent=number % 2 == 1, wide=wide, budgets=budgets), rng)
