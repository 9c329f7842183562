"""Every finding with a cause points to a section that exists, and every section is pointed to."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from trueport.cause import Evidence, Located, guess
from trueport.core.result import Finding
from trueport.core.taxonomy import Cause, Kind, Stage, Verdict
from trueport.report.pages import FOLDER, anchor, troubleshooting_page

ROOT = Path(__file__).parents[3]
EXCEPTIONS = (
    (),
    ("ValueError",),
    ("TypeError",),
    ("IndexError",),
    ("DispatchError",),
    ("UserError",),
    ("InvalidArgument",),
)
PLACES = (None, *(Located(("X",), differs=kind, alone=True) for kind in (Kind.VALUE, Kind.SHAPE, Kind.DTYPE)))
SIZES = ((False, False), (True, False), (True, True))


def evidence(stage: Stage) -> Iterator[Evidence]:
    """Yields many failures of a stage."""
    runtime, optimization = stage is Stage.RUNTIME, stage is Stage.OPTIMIZATION
    for kind, (away, sizes), misused, place in itertools.product(
        (Kind.VALUE, Kind.SHAPE, Kind.DTYPE), SIZES, ("", "training"), PLACES
    ):
        for opsets in ((), (10, 11)) if optimization else ((),):
            for level in ("", "at level basic") if runtime else ("",):
                yield Evidence(
                    Verdict.DIVERGENT, stage, kind, (), away, sizes, misused=misused, located=place, opsets=opsets,
                    optimized=level,
                )  # fmt: skip
    for raised, (away, sizes), running, operators in itertools.product(
        EXCEPTIONS, SIZES, (False, True), ((), ("onnx::Reshape",))
    ):
        kinds = (Kind.EXCEPTION, Kind.NO_KERNEL) if runtime else (Kind.EXCEPTION,)
        foreign = ((), ("Odd",)) if stage in (Stage.VALIDATION, Stage.RUNTIME) else ((),)
        for kind, odd in itertools.product(kinds, foreign):
            yield Evidence(
                Verdict.CRASHED, stage, kind, raised, away, sizes, running=running, operators=operators, foreign=odd,
                no_kernel=kind is Kind.NO_KERNEL,
            )  # fmt: skip


def sections(stage: Stage) -> set[str]:
    """Returns the anchors of a page, as the sites that show Markdown make them."""
    lines = (ROOT / FOLDER / f"{stage}.md").read_text(encoding="utf-8").splitlines()
    return {line.removeprefix("## ").replace("/", "") for line in lines if line.startswith("## ")}


@pytest.mark.parametrize("stage", Stage)
def test_every_cause_of_a_stage_has_its_section_and_no_section_is_dead(stage: Stage) -> None:
    reached = {anchor(guess(e).cause) for e in evidence(stage)}
    assert reached | {anchor(Cause.OTHER)} == sections(stage)


def test_a_finding_points_to_its_section() -> None:
    finding = Finding("", Kind.VALUE, True, None, Stage.RUNTIME, Cause.ALGORITHM_LOGIC, "")
    assert troubleshooting_page(finding) == "docs/troubleshooting/runtime.md#algorithmic-errorlogic"


def test_a_finding_without_a_cause_points_nowhere() -> None:
    assert troubleshooting_page(Finding("", Kind.VALUE, True, None, Stage.RUNTIME, None, "")) == ""
