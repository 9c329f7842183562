"""The labels of the study are those of the study."""

from __future__ import annotations

import pytest

from trueport.core import taxonomy
from trueport.core.taxonomy import Cause, Kind, Lane, Role, Stage, Status, Symptom, Verdict

STAGES = "load-model node-conversion optimization export validation runtime not-distinguishable"
SYMPTOMS = "crash wrong-model bad-performance build-failure hang unreported"
CAUSES = """incompatibility/internal incompatibility/external type-problem/node type-problem/tensor
type-problem/conventional shape-problem algorithmic-error/optimization algorithmic-error/tracing algorithmic-error/logic
api-misuse testing misconfiguration incorrect-exception-handling incorrect-assignment typo other"""
VERDICTS = "faithful divergent crashed inconclusive"
STATUSES = "ok diverged crashed not-run"


@pytest.mark.parametrize(
    ("kind", "labels"),
    [(Stage, STAGES), (Symptom, SYMPTOMS), (Cause, CAUSES), (Verdict, VERDICTS), (Status, STATUSES)],
)
def test_labels(kind, labels):
    assert [label.value for label in kind] == labels.split()


def test_no_label_means_two_things_within_one_kind():
    for kind in (Stage, Symptom, Cause, Verdict, Status, Lane, Kind, Role):
        assert len({label.value for label in kind}) == len(kind.__members__)
        assert kind.__doc__


def test_a_label_is_its_text():
    assert f"{Stage.LOAD_MODEL}" == "load-model"
    assert taxonomy.Kind("value") is Kind.VALUE
