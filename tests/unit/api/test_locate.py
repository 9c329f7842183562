"""A failed check says where: the operator, its line and module, and what was made of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import pytest
import torch
from torch import nn

from trueport.adapters.sources import subject_from_object
from trueport.api import locate
from trueport.api.session import Session
from trueport.core.options import CheckOptions
from trueport.core.result import Check
from trueport.core.taxonomy import Kind, Role, Stage, Verdict


class Net(nn.Module):
    """Two linear layers with activations between."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(6, 8), nn.GELU(), nn.Linear(8, 5))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Returns probabilities."""
        return torch.softmax(self.body(x) * 0.7, dim=-1)


@contextmanager
def planted(target: str, change: Any) -> Iterator[None]:
    """Changes the translation of operators whose names start with `target`."""
    from torch.onnx._internal.exporter import _dispatching

    original = _dispatching.dispatch

    def dispatch(node: Any, registry: Any) -> Any:
        translation, message = original(node, registry)
        return (change(translation), message) if str(node.target).startswith(target) else (translation, message)

    with mock.patch.object(_dispatching, "dispatch", dispatch):
        yield


def checked(**settings: Any) -> Check:
    """Returns the check of the network in this process."""
    torch.manual_seed(0)
    subject = subject_from_object(Net().eval(), (torch.randn(3, 6),))
    return Session(subject, CheckOptions(samples=1, **settings), lambda _: None).run().checks[0]


def first_axis(original: Any) -> Any:
    """A translation that takes the first axis whatever was asked."""
    return lambda x, dim, *args, **kwargs: original(x, 0, *args, **kwargs)


def test_the_operator_is_named_with_its_line_and_what_became_of_it() -> None:
    with planted("aten.softmax.int", first_axis):
        check = checked()
    found = check.findings[0]
    assert (check.verdict, check.stage) == (Verdict.DIVERGENT, Stage.NODE_CONVERSION)
    assert (found.nodes[0].op_type, found.nodes[0].role) == ("aten.softmax.int", Role.INTRODUCES)
    assert found.nodes[0].source.startswith("test_locate.py:")
    assert [n.op_type for n in found.nodes[1:]] == ["Softmax"]
    assert found.evidence["located"]["replacing_it_cures"] is True
    assert "introduced at aten.softmax.int" in check.explanation


def test_two_faults_are_two_findings() -> None:
    def tanh(original: Any) -> Any:
        return lambda x, approximate="none": original(x, approximate="tanh")

    with planted("aten.softmax.int", first_axis), planted("aten.gelu", tanh):
        check = checked()
    located = [f.nodes[0] for f in check.findings if "located" in f.evidence]
    assert {n.op_type for n in located} == {"aten.softmax.int", "aten.gelu.default"}
    assert {n.module for n in located if n.op_type == "aten.gelu.default"} == {"body.1"}


def test_a_model_that_is_right_has_no_place() -> None:
    check = checked()
    assert check.verdict is Verdict.FAITHFUL
    assert not any("located" in f.evidence for f in check.findings)


def test_no_search_where_none_is_wanted() -> None:
    with planted("aten.softmax.int", first_axis):
        check = checked(locate=False)
    assert check.verdict is Verdict.DIVERGENT
    assert not check.findings[0].nodes


def test_a_search_that_fails_leaves_the_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> Any:
        raise RuntimeError("no luck")

    monkeypatch.setattr(locate, "_places", broken)
    with planted("aten.softmax.int", first_axis):
        check = checked()
    assert (check.verdict, check.stage) == (Verdict.DIVERGENT, Stage.NODE_CONVERSION)
    assert check.findings[-1].kind is Kind.NOT_LOCATED
    assert "no luck" in check.findings[-1].message
