"""A graph as the source: its outputs in float64, their floors, and what hangs on a decision that rounding takes."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueport.adapters.float64.replay.decisions import ALTERNATES, Decisions, OtherPathError
from trueport.adapters.float64.replay.dialect import Dialect
from trueport.adapters.float64.replay.flat import flat, flat_names, flat_types
from trueport.adapters.float64.replay.jumps import is_real
from trueport.adapters.float64.replay.keeper import Keeper
from trueport.adapters.float64.replay.operation import Follower, Operation, Program
from trueport.adapters.float64.replay.rounding import Rounding
from trueport.core.errors import SourceError, TrueportError
from trueport.core.trace import See, TracedRun
from trueport.oracle.compare import ReferenceOutput
from trueport.oracle.fingerprint import Fingerprint
from trueport.oracle.floor import elementwise_floor
from trueport.oracle.noise import Draws
from trueport.oracle.stability import unstable_elements
from trueport.oracle.units import FLOAT_TYPES, real_dtype

Array = NDArray[Any]
RESOLUTION = 1e-3
"""The relative error that an operator must show at some output."""
MOST_OBSERVED = 20_000
"""Above so many executions of single operators, what no output shows is not looked for: it takes a run for each."""


@dataclass(frozen=True)
class ReplayedReference:
    """The source at one input set; see `SourceReference`."""

    outputs: tuple[ReferenceOutput, ...]
    real: tuple[Array, ...]
    ties: bool


@dataclass(frozen=True)
class UnseenOperator:
    """An operator that no output shows; see `Unseen`."""

    number: int
    operator: str
    source: str
    fingerprint: Fingerprint


class Replay:
    """Runs a graph in float64 with and without noise.

    Args:
        program: the graph.
        dialect: of its operators.
        seed: of all noise.
    """

    def __init__(self, program: Program, dialect: Dialect, seed: int) -> None:
        self.program = program
        self.dialect = dialect
        self.seed = seed
        self._seen: set[int] = set()

    def reference(self, feeds: Mapping[str, Any], number: int, draws: Draws) -> ReplayedReference:
        """Returns outputs in float64 with the floors that `draws` noisy runs give.

        Raises:
            SourceError: an operator does not accept its operands.
        """
        decisions = Decisions(self.dialect.jumps)
        values = self._run(feeds, decisions.record)
        main = flat(values)
        names, types = flat_names(self.program.output_names, values), flat_types(values, self.program.output_types)
        arithmetic, lost = self._noisy_runs(feeds, main, decisions, number, draws.arithmetic, wide=False)
        meaning, lost_too = self._noisy_runs(feeds, main, decisions, number, draws.meaning, wide=True)
        others = self._alternates(feeds, main, decisions) if draws.arithmetic else []
        outputs, otherwise = [], False
        for i, value in enumerate(main):
            floors = [elementwise_floor(value, _column(value, runs, i)) for runs in (meaning, arithmetic)]
            away = [other[i] for other in others if other is not None and other[i].shape == value.shape]
            unstable = unstable_elements(value, away, floors[1], _column(value, arithmetic, i))
            undecidable = lost or lost_too or len(away) < len(others)
            otherwise |= undecidable
            if undecidable:
                unstable = np.ones(value.shape, bool)
            dtype = types[i] if value.dtype.kind in "fc" and types[i] else value.dtype.name
            outputs.append(
                ReferenceOutput(names[i], dtype, value, floors[0], floors[1], unstable, draws.total, tuple(away))
            )
        return ReplayedReference(tuple(outputs), tuple(_real(o) for o in outputs), decisions.ties or otherwise)

    def computed(self, feeds: Mapping[str, Any]) -> int:
        """Returns how many elements the operators of one run give; 0 where one does not accept its operands."""
        count = 0

        def tally(operation: Operation, arguments: list[Any], outputs: list[Any]) -> list[Any]:
            nonlocal count
            del arguments
            if not operation.nested:
                count += sum(v.size for v in outputs if isinstance(v, np.ndarray))
            return outputs

        try:
            self._run(feeds, tally)
        except SourceError:
            return 0
        return count

    def real(self, feeds: Mapping[str, Any]) -> tuple[Array, ...]:
        """Returns the outputs rounded to their own types.

        Raises:
            SourceError: an operator does not accept its operands.
        """
        values = self._run(feeds, None)
        main = flat(values)
        types = flat_types(values, self.program.output_types)
        return tuple(_rounded(v, t) for v, t in zip(main, types, strict=True))

    def trace(self, feeds: Mapping[str, Any], *, draws: int, limit_bytes: int) -> TracedRun:
        """Returns one run with the values of all nodes and, from `draws` noisy runs, their floors.

        Args:
            feeds: inputs by name.
            draws: noisy runs.
            limit_bytes: what all values together may take; those beyond it are counted and left out.
        """
        constants = frozenset(self.program.constants)
        keeper, decisions = Keeper(limit_bytes, draws, constants), Decisions(self.dialect.jumps)

        def watched(see: See, before: Follower) -> Follower:
            def follow(operation: Operation, arguments: list[Any], outputs: list[Any]) -> list[Any]:
                outputs = before(operation, arguments, outputs)
                node = self.program.traced(operation)
                return outputs if node is None else see(node, outputs)

            return follow

        self._run(feeds, watched(keeper.main, decisions.record))
        for number in range(draws):
            rng = np.random.default_rng([self.seed, 0x7472, number])
            rounding = Rounding(rng, self.dialect, coherent=number % 2 == 1, wide=True)
            with contextlib.suppress(OtherPathError, SourceError):  # a run on another path has no noise to tell of
                self._run(feeds, watched(keeper.noisy, _both(decisions.keeper(remember=False), rounding)))
        return keeper.run(self.program.output_values, constants)

    def unseen(self, feeds: Mapping[str, Any], threshold: float) -> list[UnseenOperator] | None:
        """Returns the operators whose relative error of 1e-3 no output shows, at these feeds or at earlier ones.

        None where there are too many to try.
        """
        tried: list[tuple[int, Operation, Fingerprint]] = []
        count = itertools.count()

        def look(operation: Operation, arguments: list[Any], outputs: list[Any]) -> list[Any]:
            del arguments
            if not operation.nested:
                number = next(count)
                # A relative error of what is exactly zero, or no number with a fraction, is none.
                if outputs and is_real(outputs[0]) and outputs[0].any():
                    tried.append((number, operation, Fingerprint.of(outputs[0])))
            return outputs

        main = flat(self._run(feeds, look))
        executed = next(count)
        tried = [item for item in tried if item[0] not in self._seen]
        if len(tried) * executed > MOST_OBSERVED:
            return None
        floor = [np.abs(m) * 2.0**-24 if m.dtype.kind == "f" else np.zeros(m.shape) for m in main]
        hidden = [item for item in tried if not self._shows(feeds, item[0], main, floor, threshold)]
        self._seen.update({item[0] for item in tried} - {item[0] for item in hidden})
        return [UnseenOperator(n, operation.operator, operation.source, seen) for n, operation, seen in hidden]

    def _shows(
        self, feeds: Mapping[str, Any], number: int, main: list[Array], floors: list[Array], threshold: float
    ) -> bool:
        """Whether an error of the operator with this number shows at some output."""
        count = itertools.count()
        rng = np.random.default_rng([self.seed, number])

        def move(operation: Operation, arguments: list[Any], outputs: list[Any]) -> list[Any]:
            del arguments
            if operation.nested or next(count) != number:
                return outputs
            return [v * (1 + RESOLUTION * rng.choice([-1.0, 1.0], v.shape)) if is_real(v) else v for v in outputs]

        moved = flat(self._run(feeds, move))
        for value, other, floor in zip(main, moved, floors, strict=False):
            if value.shape != other.shape:
                return True
            with np.errstate(invalid="ignore"):
                away = np.abs(other - value) > threshold * floor if value.dtype.kind in "fc" else other != value
            if np.any(away):
                return True
        return False

    # ------------------------------------------------------------------ runs

    def _run(self, feeds: Mapping[str, Any], follow: Follower | None) -> list[Any]:
        try:
            return self.program.run(feeds, follow=follow)
        except TrueportError as error:
            raise SourceError(f"{error}") from error

    def _noisy_runs(
        self, feeds: Mapping[str, Any], main: list[Array], decisions: Decisions, number: int, draws: int, *, wide: bool
    ) -> tuple[list[list[Array]], bool]:
        """Returns the runs, and whether one took another path through the graph."""
        runs = []
        for k in range(draws):
            rng = np.random.default_rng([self.seed, number, draws, k, int(wide)])
            rounding = Rounding(rng, self.dialect, coherent=k % 2 == 1, wide=wide)
            keep = decisions.keeper(remember=not wide)
            try:
                run = flat(self._run(feeds, _both(keep, rounding)))
            except (OtherPathError, SourceError):
                return [], True
            if len(run) != len(main):
                return [], True
            runs.append(run)
        return runs, False

    def _alternates(
        self, feeds: Mapping[str, Any], main: list[Array], decisions: Decisions
    ) -> list[list[Array] | None]:
        """Returns the outputs under the other decisions: none where no decision is near, a last None for another path.

        What is undefined may become a size: then the smallest number is refused, and the largest one never tried.
        """
        margins = decisions.margins()
        if not decisions.any_near(margins):
            return []
        found: list[list[Array] | None] = []
        for number in range(ALTERNATES):
            try:
                run = flat(self._run(feeds, decisions.pusher(number, margins)))
            except (OtherPathError, SourceError, MemoryError):
                return [*found, None]
            found.append(run if len(run) == len(main) else None)
        return found


def _both(keep: Follower, rounding: Rounding) -> Follower:
    """A decision is kept as it is; what is no decision gets its noise."""

    def follow(operation: Operation, arguments: list[Any], outputs: list[Any]) -> list[Any]:
        kept = keep(operation, arguments, outputs)
        return kept if kept is not outputs else rounding(operation, arguments, outputs)

    return follow


def _column(value: Array, runs: Sequence[Sequence[Array]], index: int) -> list[Array]:
    """One output over the noisy runs; empty where it has no noise or another shape in one of them."""
    column = [np.asarray(run[index]) for run in runs]
    usable = value.dtype.kind in "fc" and all(c.shape == value.shape for c in column)
    return column if usable else []


def _real(output: ReferenceOutput) -> Array:
    return _rounded(output.value, output.dtype)


def _rounded(value: Array, dtype: str) -> Array:
    """Returns the value in its own type."""
    if value.dtype.kind not in "fc" or dtype not in FLOAT_TYPES:
        return value
    with np.errstate(all="ignore"):
        return np.asarray(value.astype(real_dtype(dtype)))
