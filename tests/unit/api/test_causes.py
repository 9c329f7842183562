"""A finding says why, how sure that is, and what to do where that is certain."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from tests.unit.api.test_locate import checked, first_axis, planted
from trueport.adapters.sources import subject_from_object
from trueport.api import causes
from trueport.api.session import Session
from trueport.core.options import CheckOptions
from trueport.core.taxonomy import Cause, Kind, Stage, Verdict


def test_a_located_operator_is_wrong_by_itself_for_sure() -> None:
    with planted("aten.softmax.int", first_axis):
        located, bare = checked(), checked(locate=False)
    assert located.cause is bare.cause is Cause.ALGORITHM_LOGIC
    assert located.findings[0].evidence["cause"]["confidence"] == "high"
    assert "the source's own values" in located.findings[0].evidence["cause"]["because"]
    assert located.findings[0].evidence["located"]["source_value"] == "float64[3,5]"
    assert bare.findings[0].evidence["cause"]["confidence"] == "medium"
    assert not any("cause_is_a_guess" in c.findings[0].evidence for c in (located, bare))


def test_an_operator_without_translation_is_to_be_written_otherwise() -> None:
    class Uneven(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return nn.functional.adaptive_max_pool2d(x, 3)

    subject = subject_from_object(Uneven().eval(), (torch.randn(1, 1, 7, 7),))
    options = CheckOptions(samples=1, converters=("torch-script",))
    check = Session(subject, options, lambda _: None).run().checks[0]
    assert (check.verdict, check.stage) == (Verdict.CRASHED, Stage.NODE_CONVERSION)
    assert check.cause is Cause.INCOMPATIBILITY_EXTERNAL
    assert check.findings[0].evidence["cause"]["confidence"] in ("high", "medium")


def test_an_explanation_that_fails_leaves_the_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> Any:
        raise RuntimeError("no luck")

    monkeypatch.setattr(causes, "_circumstances", broken)
    with planted("aten.softmax.int", first_axis):
        check = checked(locate=False)
    assert (check.verdict, check.stage, check.cause) == (
        Verdict.DIVERGENT, Stage.NODE_CONVERSION, Cause.ALGORITHM_LOGIC,
    )  # fmt: skip
    assert check.findings[-1].kind is Kind.NOT_LOCATED
    assert "no luck" in check.findings[-1].message
