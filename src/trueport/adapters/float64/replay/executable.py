"""A converted graph as an executable: evaluated in float64, with noise in what its converter computed itself."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueport.adapters.float64.constants import KnownNumbers
from trueport.adapters.float64.replay.dialect import Dialect
from trueport.adapters.float64.replay.flat import flat, flat_types
from trueport.adapters.float64.replay.keeper import Keeper
from trueport.adapters.float64.replay.operation import Follower, Operation, Program
from trueport.adapters.float64.replay.rounding import Budget, Rounding, noisy_run, noisy_runs
from trueport.adapters.protocols import NoFloat64Error, Wide
from trueport.core.trace import See, TracedRun
from trueport.inputs.draw import InputSet
from trueport.oracle.fingerprint import Fingerprint
from trueport.oracle.units import FLOAT_TYPES, real_dtype

Array = NDArray[Any]

CONSTANT_PLACES = 1.0
"""By how many last places a computed constant is moved (uniformly up to that), in units of 2u."""
_CASTS = frozenset({"Cast", "CastLike"})


class ForeignCasts:
    """Carries out casts to types that the source does not use; a `Follower`."""

    def __init__(self, known: KnownNumbers) -> None:
        self._known = known

    def __call__(self, operation: Operation, arguments: list[Any], outputs: list[Any]) -> list[Any]:
        """Returns the outputs as the narrow type holds them, where the source has no such type."""
        del arguments
        if operation.operator not in _CASTS or not self._known.is_foreign(operation.output_types[0]):
            return outputs
        with np.errstate(all="ignore"):
            narrow = outputs[0].astype(real_dtype(operation.output_types[0]))
            return [np.asarray(narrow.astype(np.float64)), *outputs[1:]]


class ComputedAttributes:
    """Moves what operators with computed numbers among their attributes give: 1/6 as float32 is off by a last place."""

    def __init__(self, known: KnownNumbers, rng: np.random.Generator) -> None:
        self._known = known
        self._rng = rng

    def __call__(self, operation: Operation, arguments: list[Any], outputs: list[Any]) -> list[Any]:
        """Returns the outputs with one random error for each tensor, where an attribute was computed."""
        del arguments
        numbers = [v for v in operation.attributes.values() if isinstance(v, float)]
        if not numbers or not self._known.computed(np.asarray(numbers)).any():
            return outputs
        size = 2 * FLOAT_TYPES["float32"].unit_roundoff
        return [
            np.asarray(v * (1 + size * self._rng.uniform(-1, 1)))
            if isinstance(v, np.ndarray) and v.dtype == np.float64
            else v
            for v in outputs
        ]


class ConstantsInside:
    """Moves what operators give whose definition holds a number that the source holds rounded.

    A source that writes GELU out divides by the float32 next to the root of two; an operator that means GELU divides by
    the root itself. Scaling the argument and dividing the result by the same factor moves that number and nothing else.
    """

    def __init__(self, known: KnownNumbers, dialect: Dialect, rng: np.random.Generator) -> None:
        self._known = known
        self._constants = dialect.constants_inside
        self._rng = rng

    def __call__(self, operation: Operation, arguments: list[Any], outputs: list[Any]) -> list[Any]:
        """Returns the outputs with one random error of the number for each tensor."""
        numbers = self._constants.get(operation.operator, ())
        if not any(self._known.rounds(number) for number in numbers):
            return outputs
        factor = 1 + 2 * FLOAT_TYPES["float32"].unit_roundoff * self._rng.uniform(-1, 1)
        moved = operation.apply([a * factor if _is_float(a) else a for a in arguments])
        return [np.asarray(m / factor) if _is_float(m) else m for m in moved]


def _is_float(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype == np.float64


class GraphExecutable(ABC):
    """A graph that a converter made.

    Args:
        dialect: of its operators.
    """

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._masks: tuple[KnownNumbers, dict[str, Array]] | None = None

    @property
    @abstractmethod
    def program(self) -> Program:
        """The graph; made when first needed."""

    @abstractmethod
    def feeds(self, inputs: InputSet) -> dict[str, Array]:
        """Returns the graph's inputs by name."""

    def is_constant(self, operation: Operation) -> bool:
        """Whether an operator depends on no input, so that a converter may fold it."""
        del operation
        return False

    def evaluate(self, inputs: InputSet, known: KnownNumbers) -> list[Wide]:
        """Returns the outputs in float64."""
        values = self._run(inputs, self._literals(known), ForeignCasts(known))
        declared = flat_types(values, self.program.output_types)
        return [
            Wide(value, dtype if value.dtype.kind in "fc" else value.dtype.name)
            for value, dtype in zip(flat(values), declared, strict=True)
        ]

    def noisy(self, inputs: InputSet, *, draws: int, seed: int, known: KnownNumbers) -> list[list[Array]]:
        """Returns evaluations with the noise of float64, and computed constants moved by a last place."""
        run = self._noisy_evaluation(inputs, known, None)
        return noisy_runs(run, self._dialect, draws=draws, seed=[seed], wide=True)

    def followed(
        self, inputs: InputSet, known: KnownNumbers, see: See, *, draw: int | None = None, seed: int = 0
    ) -> list[Array]:
        """Returns the outputs of one evaluation that is watched node by node.

        Args:
            inputs: one input set.
            known: what the source holds.
            see: given each node outside of subgraphs with its outputs; what it returns is what the rest sees.
            draw: number of the noisy run, None for the evaluation without noise.
            seed: of the noise.
        """
        if draw is not None:
            return noisy_run(
                self._noisy_evaluation(inputs, known, see), self._dialect, number=draw, seed=[seed], wide=True
            )
        foreign = ForeignCasts(known)

        def follow(operation: Operation, arguments: list[Any], outputs: list[Any]) -> list[Any]:
            return self._seen(see, operation, foreign(operation, arguments, outputs))

        return flat(self._run(inputs, self._literals(known), follow))

    def trace(self, inputs: InputSet, known: KnownNumbers, *, draws: int, seed: int, limit_bytes: int) -> TracedRun:
        """Returns one run with the values of all nodes and, from `draws` noisy runs, their floors.

        Args:
            inputs: one input set.
            known: what the source holds.
            draws: noisy runs; none leaves the floors out.
            seed: of the noise.
            limit_bytes: what all values together may take; those beyond it are counted and left out.
        """
        keeper = Keeper(limit_bytes, draws, self.constant_values())
        self.followed(inputs, known, keeper.main)
        for number in range(draws):
            self.followed(inputs, known, keeper.noisy, draw=number, seed=seed)
        return keeper.run(self.program.output_values, self.constant_values())

    def constant_values(self) -> frozenset[str]:
        """Returns the names of the values that depend on no input."""
        return frozenset(self.program.constants)

    def _seen(self, see: See | None, operation: Operation, outputs: list[Any]) -> list[Any]:
        node = None if see is None else self.program.traced(operation)
        return outputs if see is None or node is None else see(node, outputs)

    def _noisy_evaluation(
        self, inputs: InputSet, known: KnownNumbers, see: See | None
    ) -> Callable[[Rounding, np.random.Generator], list[Any]]:
        computed = self._computed(known)

        def run(rounding: Rounding, rng: np.random.Generator) -> list[Any]:
            coherent = bool(rng.integers(2))
            moved = {name: self._move(name, mask, rng, coherent=coherent) for name, mask in computed.items()}
            moved = {**self._literals(known), **moved}
            foreign, attributes = ForeignCasts(known), ComputedAttributes(known, rng)
            inside = ConstantsInside(known, self._dialect, rng)
            folded = Rounding(rng, self._dialect, coherent=coherent, wide=False)

            def follow(operation: Operation, arguments: list[Any], outputs: list[Any]) -> list[Any]:
                outputs = inside(operation, arguments, foreign(operation, arguments, outputs))
                outputs = attributes(operation, arguments, outputs)
                # What depends on no input may be folded in the declared type, here or by the next step of the road.
                noise = folded if self.is_constant(operation) else rounding
                return self._seen(see, operation, noise(operation, arguments, outputs))

            return flat(self._run(inputs, moved, follow))

        return run

    def rounded(
        self, inputs: InputSet, *, draws: int, seed: int, budgets: Mapping[str, Budget]
    ) -> tuple[list[Array], list[list[Array]]]:
        """Returns the evaluation without noise, and evaluations with the rounding noise of the declared types.

        Args:
            inputs: one input set.
            draws: number of noisy evaluations.
            seed: of the noise.
            budgets: what the runtime's kernels may be off by.
        """
        runs = noisy_runs(
            lambda rounding, _: flat(self._run(inputs, None, rounding)),
            self._dialect, draws=draws, seed=[seed], wide=False, budgets=budgets,
        )  # fmt: skip
        return flat(self._run(inputs, None, None)), runs

    def fingerprints(self, inputs: InputSet) -> list[Fingerprint]:
        """Returns the fingerprints of all floating-point values that the graph computes or holds."""
        found = [Fingerprint.of(np.asarray(c.value, np.float64)) for c in self.program.constants.values()]

        def follow(operation: Operation, arguments: list[Any], outputs: list[Any]) -> list[Any]:
            del operation, arguments
            found.extend(Fingerprint.of(v) for v in outputs if isinstance(v, np.ndarray) and v.dtype.kind == "f")
            return outputs

        self._run(inputs, None, follow)
        return found

    def _literals(self, known: KnownNumbers) -> dict[str, Array]:
        """Literals written in double precision and cast down, as a source without doubles holds them."""
        if "float64" in known.types:
            return {}
        with np.errstate(over="ignore"):
            return {
                name: constant.value.astype(np.float32).astype(np.float64)
                for name, constant in self.program.constants.items()
                if constant.dtype == "float64"
            }

    def _computed(self, known: KnownNumbers) -> dict[str, Array]:
        """Returns where constants were computed by the converter; found once for each source."""
        if self._masks is None or self._masks[0] is not known:
            self._masks = (known, self._find_computed(known))
        return self._masks[1]

    def _find_computed(self, known: KnownNumbers) -> dict[str, Array]:
        masks = {
            name: known.computed(constant.value)
            for name, constant in self.program.constants.items()
            if constant.dtype in FLOAT_TYPES and constant.dtype != "float64"
        }
        return {name: mask for name, mask in masks.items() if mask.any()}

    def _move(self, name: str, mask: Array, rng: np.random.Generator, *, coherent: bool) -> Array:
        constant = self.program.constants[name]
        wide = np.asarray(constant.value, dtype=np.float64)
        size = CONSTANT_PLACES * 2 * FLOAT_TYPES[constant.dtype].unit_roundoff * np.abs(wide) * mask
        if coherent:
            return np.asarray(wide + size * (1 if rng.integers(2) else -1))
        return np.asarray(wide + size * rng.uniform(-1, 1, wide.shape))

    def _run(self, inputs: InputSet, constants: Mapping[str, Array] | None, follow: Follower | None) -> list[Any]:
        if self.program.missing:
            raise NoFloat64Error(self.program.missing)
        return self.program.run(self.feeds(inputs), constants=constants, follow=follow)
