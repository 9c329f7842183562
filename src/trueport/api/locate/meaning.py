"""Up to the file: the first wrong checkpoint against the last right one, node by node.

How depends on what the two are: a graph whose values carry the source's names is evaluated on the source's own values;
for others values are matched by what they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from trueport.adapters.protocols import Checkpoint, Executable, Followed
from trueport.api.locate.budget import budget_bytes
from trueport.bisect.judge import Trial
from trueport.core.taxonomy import Stage
from trueport.core.trace import See, TracedNode, TracedRun
from trueport.inputs.draw import InputSet
from trueport.locate.counterparts import with_counterparts
from trueport.locate.forced import Faults, Score, find_faults
from trueport.locate.frontier import find_frontier
from trueport.locate.names import NameCheck
from trueport.locate.pairs import Pairing
from trueport.locate.places import Place, of_faults, of_frontier
from trueport.locate.stepping import stepped_pairs
from trueport.oracle.compare import LARGEST_SCORE, ReferenceOutput, SourceReference, compare_meaning
from trueport.oracle.floor import elementwise_floor
from trueport.oracle.thresholds import THRESHOLDS

if TYPE_CHECKING:
    from trueport.api.session import Session
    from trueport.api.walk import Walk

FLOOR_DRAWS = 4
"""Noisy runs behind the floors of the source's values."""
OWN_DRAWS = 6
"""Noisy runs behind the candidate's own floors at its outputs."""


@dataclass
class Meaning:
    """Locates in the meaning lane.

    Attributes:
        session: of the check.
        walk: with the last right and the first wrong checkpoint.
        trial: that shows the failure.
    """

    session: Session
    walk: Walk
    trial: Trial

    def places(self) -> list[Place]:
        """Returns where the wrong checkpoint parts from the right one."""
        wrong = self.walk.wrong
        assert wrong is not None
        executable: Any = wrong.executable
        forced = hasattr(executable, "followed")
        good = self._good(FLOOR_DRAWS if forced else 0)
        if good is None:
            return []
        if forced:
            faults, nodes = self._forced(executable, good)
            if faults.faults and faults.cured:
                return of_faults(faults, good, nodes)
        bad, rounded = self._bad, wrong.stage is not Stage.LOAD_MODEL
        frontier = find_frontier(good, bad, self._wrong_outputs(), rounded=rounded)
        return of_frontier(with_counterparts(frontier, good, bad))

    @cached_property
    def _bad(self) -> TracedRun:
        """The wrong checkpoint, which is asked for twice where no fault is found on the source's own values."""
        assert self.walk.wrong is not None
        return self._trace(self.walk.wrong.executable)

    @cached_property
    def _limit_bytes(self) -> int:
        return budget_bytes(self.session.options.memory_mb)

    @property
    def _inputs(self) -> InputSet:
        return self.trial.inputs

    @property
    def _references(self) -> Sequence[ReferenceOutput]:
        references = self.session.references
        assert references is not None
        confirmed: SourceReference = references.confirmed(references.inputs.index(self._inputs))
        return confirmed.outputs

    def _wrong_outputs(self) -> list[int]:
        return [i for i, c in enumerate(self.trial.comparisons) if c.different]

    def _good(self, draws: int) -> TracedRun | None:
        right = self.walk.right
        if right is None or right.is_source:
            return self.session.source.trace(self._inputs, draws=draws, limit_bytes=self._limit_bytes)
        traced = self._trace(right.executable, draws)
        return traced if any(node.source for node in traced.nodes) else self._with_lines(traced, right, draws)

    def _with_lines(self, traced: TracedRun, right: Checkpoint, draws: int) -> TracedRun:
        """A run that does not know the lines of the model: the source's own run does, or nothing does."""
        origin = self.session.source.trace(self._inputs, draws=draws, limit_bytes=self._limit_bytes)
        if origin is None or not any(node.source for node in origin.nodes):
            return traced
        if not hasattr(right.executable, "followed"):
            return origin  # a traced graph: the same operators, and names that mean nothing
        lines = {node.name: node.source for node in origin.nodes}
        return replace(traced, nodes=tuple(replace(n, source=lines.get(n.name, "")) for n in traced.nodes))

    def _trace(self, executable: Executable, draws: int = 0) -> TracedRun:
        return executable.trace(
            self._inputs, self.walk.known, draws=draws, seed=self.session.options.seed, limit_bytes=self._limit_bytes
        )

    def _forced(self, executable: Followed, good: TracedRun) -> tuple[Faults, list[TracedNode]]:
        known, seed = self.walk.known, self.session.options.seed

        def follow(see: See, draw: int | None) -> list[Any]:
            return executable.followed(self._inputs, known, see, draw=draw, seed=seed)

        names, constants, score = NameCheck(good), executable.constant_values(), self._scorer(executable)
        follow(names.see, None)
        marked, pairing = names.following(follow), Pairing(good, constants)
        marked(pairing.see, None)
        faults = find_faults(marked, good, pairing.pairs(), score)
        if not (faults.faults and faults.cured):
            bad = names.marked(self._bad)
            pairs = stepped_pairs(
                marked, good, bad, lambda: Pairing(good, constants), self._wrong_outputs(),
                lambda outputs: score(outputs) <= THRESHOLDS.meaning,
            )  # fmt: skip
            faults = find_faults(marked, good, pairs, score)
        return faults, pairing.nodes

    def score_of(self, executable: Executable) -> float:
        """Returns the largest score of the outputs of an executable, on the input set that shows the failure."""
        outputs = executable.evaluate(self._inputs, self.walk.known)
        return self._scorer(executable)([output.value for output in outputs])

    def _scorer(self, executable: Executable) -> Score:
        """Returns what judges outputs of the candidate by the source's, with the candidate's own noise allowed for."""
        floors: list[Any] = []
        expected = self._references

        def score(outputs: Sequence[Any]) -> float:
            if len(outputs) != len(expected):
                return LARGEST_SCORE
            plain = max((compare_meaning(r, v).score for r, v in zip(expected, outputs, strict=True)), default=0.0)
            if plain <= THRESHOLDS.meaning:
                return plain
            if not floors:  # dear, and for nothing where no value is suspect
                floors.extend(self._own_floors(executable))
            worst = 0.0
            for i, (reference, value) in enumerate(zip(expected, outputs, strict=True)):
                floor = floors[i] if i < len(floors) else None
                worst = max(worst, compare_meaning(reference, value, extra_floor=floor).score)
            return worst

        return score

    def _own_floors(self, executable: Executable) -> list[Any]:
        """The candidate's own noise around its own outputs, which may be far from those with faults neutralized."""
        seed, known = self.session.options.seed, self.walk.known
        main = [output.value for output in executable.evaluate(self._inputs, known)]
        runs = executable.noisy(self._inputs, draws=OWN_DRAWS, seed=seed, known=known)
        floors = []
        for i, value in enumerate(main):
            column = [run[i] for run in runs if i < len(run) and run[i].shape == value.shape]
            floors.append(elementwise_floor(value, column) if value.dtype.kind in "fc" and column else None)
        return floors
