"""`trueport compare` on pairs of files: no rewrite that means the same is called divergent, no mutant faithful."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import onnx
import pytest

from tests.quality.judging import told
from tests.quality.onnx_pairs.edits import Edit
from tests.quality.onnx_pairs.models import TEXTS, model
from tests.quality.onnx_pairs.right import RIGHT
from tests.quality.onnx_pairs.wrong import WRONG
from trueport.adapters.converters.candidate import Candidate
from trueport.adapters.sources import load_subject
from trueport.api.session import Session
from trueport.core.options import CheckOptions
from trueport.core.result import Check
from trueport.core.taxonomy import Verdict

pytestmark = pytest.mark.slow

MOST_UNDECIDED = 1
"""Of the pairs of one model."""
FEW = 3


class Comparer:
    """Compares many candidates with one reference, whose values are computed once.

    Args:
        name: of the model.
        folder: for the files.
        few: whether to try the first input sets alone before all: enough for most mutants.
    """

    def __init__(self, name: str, folder: Path, *, few: bool) -> None:
        self._folder = folder
        reference = folder / "reference.onnx"
        onnx.save(model(name), str(reference))
        subject = load_subject(str(reference))
        self._session = Session(subject, CheckOptions(candidate=str(reference)), lambda _: None)
        self.itself: Check = self._session.run().checks[0]
        references = self._session.references
        assert references is not None
        self._all = references
        # A mutant is evaluated some thirty times at each input set.
        self._first = replace(references, inputs=references.inputs[:FEW], screens=references.screens[:FEW])
        self._few = few

    def compared(self, candidate: onnx.ModelProto) -> Check:
        """Returns the check of a candidate on all input sets, or on the first ones where these show a difference."""
        path = self._folder / "candidate.onnx"
        onnx.save(candidate, str(path))
        for references in (self._first, self._all) if self._few else (self._all,):
            self._session.references = references
            (check,) = self._session._convert_and_run(None, Candidate(path, {}))
            if check.verdict in (Verdict.DIVERGENT, Verdict.CRASHED):
                break
        return check


@pytest.mark.parametrize("name", TEXTS)
def test_no_rewrite_that_means_the_same_is_called_wrong(name, tmp_path):
    comparer = Comparer(name, tmp_path, few=False)
    assert comparer.itself.verdict is Verdict.FAITHFUL, told(comparer.itself)
    _judge(name, RIGHT[name], comparer, {Verdict.FAITHFUL})


@pytest.mark.parametrize("name", TEXTS)
def test_no_mutant_is_called_faithful(name, tmp_path):
    # A mutant that the runtime cannot even load is called crashed.
    _judge(name, WRONG[name], Comparer(name, tmp_path, few=True), {Verdict.DIVERGENT, Verdict.CRASHED})


def _judge(name: str, edits: dict[str, Edit], comparer: Comparer, wanted: set[Verdict]) -> None:
    bad, undecided = [], []
    for label, edit in edits.items():
        candidate = model(name)
        edit(candidate)
        check = comparer.compared(candidate)
        if check.verdict is Verdict.INCONCLUSIVE:
            undecided.append(f"{label}: {told(check)}")
        elif check.verdict not in wanted:
            bad.append(f"{label}: {told(check)}")
    assert not bad, "\n".join(bad)
    assert len(undecided) <= MOST_UNDECIDED, "\n".join(undecided)


def test_there_are_enough_of_both():
    counts = Counter(right=sum(map(len, RIGHT.values())), wrong=sum(map(len, WRONG.values())))
    assert counts["right"] >= 60
    assert counts["wrong"] >= 100
