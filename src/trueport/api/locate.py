"""After a failed check: where in the model the error is introduced.

Up to the file, the first wrong checkpoint is compared with the last right one, node by node, on the input set that
shows the failure. How depends on what the two are: a graph whose values carry the source's names is evaluated on the
source's own values; for others values are matched by what they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from trueport.adapters.protocols import Executable, Followed
from trueport.api.afterlife import with_note
from trueport.bisect.judge import Trial
from trueport.bisect.road import Step, attribute
from trueport.core.result import Check, Finding
from trueport.core.signature import signature
from trueport.core.taxonomy import Role, Stage
from trueport.core.trace import See, TracedNode, TracedRun
from trueport.inputs.draw import InputSet
from trueport.locate.forced import Faults, find_faults
from trueport.locate.frontier import find_frontier
from trueport.locate.pairs import Pairing
from trueport.locate.places import Place, of_faults, of_frontier
from trueport.oracle.compare import LARGEST_SCORE, ReferenceOutput, SourceReference, compare_meaning
from trueport.oracle.floor import elementwise_floor

if TYPE_CHECKING:
    from trueport.api.session import Session
    from trueport.api.walk import Walk

LIMIT_BYTES = 2 * 2**30
"""What the values of one run may take; nodes whose values do not fit are judged together with those after them."""
FLOOR_DRAWS = 4
"""Noisy runs behind the floors of the source's values."""
OWN_DRAWS = 6
"""Noisy runs behind the candidate's own floors at its outputs."""


def located(session: Session, walk: Walk, steps: Sequence[Step], check: Check) -> Check:
    """Returns a failed check with the places in the finding that explains the verdict; further places are findings.

    The verdict and the stage stay as they are, whatever becomes of the search.

    Args:
        session: of the check.
        walk: of the conversion.
        steps: of the road, the runtime's last.
        check: as it was concluded.
    """
    main = next((f for f in check.findings if f.stage is check.stage and f.cause is not None), None)
    if main is None or main.nodes:
        return check
    try:
        places = _places(session, walk, steps, check.stage)
    except Exception as error:  # noqa: BLE001 - the search is ours, and the verdict does not hang on it
        return with_note(check, f"the search for the place ended with {type(error).__name__}: {error}")
    if not places:
        return check
    dtypes = tuple(dict.fromkeys(spec.example.dtype.name for spec in session.specs))
    first = _with_place(main, places[0], check.converter, dtypes)
    further = [_with_place(replace(main, evidence={}), place, check.converter, dtypes) for place in places[1:]]
    found: list[Finding] = []
    for finding in check.findings:
        found += [first, *further] if finding is main else [finding]
    return replace(check, findings=tuple(found), explanation=f"{check.explanation} {_sentence(places)}")


def _places(session: Session, walk: Walk, steps: Sequence[Step], stage: Stage | None) -> list[Place]:
    step = attribute(steps, whole_file=session.options.candidate is not None).step
    if step is None or walk.wrong is None or stage is Stage.RUNTIME:
        return []
    trial = _telling(step.judgement.failures)
    return [] if trial is None else _Meaning(session, walk, trial).places()


def _sentence(places: Sequence[Place]) -> str:
    more = f" (and {len(places) - 1} more)" if len(places) > 1 else ""
    return f"It is introduced at {places[0].message}{more}."


def _telling(failures: Sequence[Trial]) -> Trial | None:
    """The failing input set that shows most: one whose outputs could be compared, with the fewest elements."""
    compared = [t for t in failures if t.error is None]
    material = [t for t in compared if t.material] or compared
    return min(material, key=lambda t: sum(a.size for a in t.inputs.arrays), default=None)


def _with_place(finding: Finding, place: Place, converter: str | None, dtypes: Sequence[str]) -> Finding:
    """A finding that knows its operators has the signature of these operators."""
    operators = [node.op_type for node in place.nodes if node.role is Role.INTRODUCES]
    identity = signature(
        stage=finding.stage, symptom=finding.symptom, kind=finding.kind, converter=converter, operators=operators,
        dtypes=dtypes,
    )  # fmt: skip
    return replace(
        finding,
        signature=identity,
        message=f"{finding.message}; introduced at {place.message}",
        nodes=place.nodes,
        evidence={**finding.evidence, "located": place.evidence},
    )


@dataclass
class _Meaning:
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
        bad = self._trace(executable)
        frontier = find_frontier(good, bad, self._wrong_outputs(), rounded=wrong.stage is not Stage.LOAD_MODEL)
        return of_frontier(frontier)

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
            return self.session.source.trace(self._inputs, draws=draws, limit_bytes=LIMIT_BYTES)
        return self._trace(right.executable, draws)

    def _trace(self, executable: Executable, draws: int = 0) -> TracedRun:
        return executable.trace(
            self._inputs, self.walk.known, draws=draws, seed=self.session.options.seed, limit_bytes=LIMIT_BYTES
        )

    def _forced(self, executable: Followed, good: TracedRun) -> tuple[Faults, list[TracedNode]]:
        known, seed = self.walk.known, self.session.options.seed

        def follow(see: See, draw: int | None) -> list[Any]:
            return executable.followed(self._inputs, known, see, draw=draw, seed=seed)

        pairing = Pairing(good, executable.constant_values())
        follow(pairing.see, None)
        return find_faults(follow, good, pairing.pairs(), self._scorer(executable)), pairing.nodes

    def _scorer(self, executable: Executable) -> Any:
        """Returns what judges outputs of the candidate by the source's, with the candidate's own noise allowed for."""
        runs: list[list[Any]] = []
        expected = self._references

        def score(outputs: Sequence[Any]) -> float:
            if len(outputs) != len(expected):
                return LARGEST_SCORE
            if not runs:  # dear, and for nothing where no value is suspect
                seed, known = self.session.options.seed, self.walk.known
                runs.extend(executable.noisy(self._inputs, draws=OWN_DRAWS, seed=seed, known=known))
            worst = 0.0
            for i, (reference, value) in enumerate(zip(expected, outputs, strict=True)):
                column = [run[i] for run in runs if i < len(run) and run[i].shape == value.shape]
                floor = elementwise_floor(value, column) if value.dtype.kind in "fc" and column else None
                worst = max(worst, compare_meaning(reference, value, extra_floor=floor).score)
            return worst

        return score
