"""After a failed check: the operator, the pass or the kernel that introduces the error.

`meaning` looks at checkpoints up to the file, `changed` says what an optimizer or a writer changed, `runtime` looks for
the runtime's transformers and kernels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from trueport.adapters.protocols import Runtime
from trueport.api.afterlife import with_note
from trueport.api.locate.changed import with_changes
from trueport.api.locate.meaning import Meaning
from trueport.api.locate.optimizer import OptimizerFailure
from trueport.api.locate.runtime import RuntimeFailure
from trueport.bisect.judge import Trial
from trueport.bisect.road import Step, attribute
from trueport.core.result import Check, Finding
from trueport.core.signature import signature
from trueport.core.taxonomy import Role, Stage
from trueport.locate.places import Place

if TYPE_CHECKING:
    from trueport.api.session import Session
    from trueport.api.walk import Walk


def located(session: Session, walk: Walk, steps: Sequence[Step], check: Check, runtime: Runtime) -> Check:
    """Returns a failed check with the places in the finding that explains the verdict; further places are findings.

    The verdict and the stage stay as they are, whatever becomes of the search.

    Args:
        session: of the check.
        walk: of the conversion.
        steps: of the road, the runtime's last.
        check: as it was concluded.
        runtime: that ran the file.
    """
    main = next((f for f in check.findings if f.stage is check.stage and f.cause is not None), None)
    if main is None or main.nodes:
        return check
    try:
        places = _places(session, walk, steps, check.stage, runtime)
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


def _places(session: Session, walk: Walk, steps: Sequence[Step], stage: Stage | None, runtime: Runtime) -> list[Place]:
    step = attribute(steps, whole_file=session.options.candidate is not None).step
    if step is None:
        return []
    if stage is Stage.RUNTIME:
        return RuntimeFailure(session, walk, steps, runtime).places()
    trial = _telling(step.judgement.failures)
    if walk.wrong is None or trial is None:
        return []
    meaning = Meaning(session, walk, trial)
    places = with_changes(meaning.places(), walk, step)
    if stage is not Stage.OPTIMIZATION or walk.unoptimized is None:
        return places
    return OptimizerFailure(meaning, walk.unoptimized.model).described(places)


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
