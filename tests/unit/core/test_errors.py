"""The tree of errors is the one drawn at the top of the module."""

from __future__ import annotations

import re

import pytest

from trueport.core import errors
from trueport.core.errors import MissingToolError, SourceError, StoreError, ToolError, TrueportError, UsageError

TREE = {
    TrueportError: Exception, UsageError: TrueportError, SourceError: UsageError, ToolError: TrueportError,
    MissingToolError: ToolError, StoreError: TrueportError,
}  # fmt: skip


def test_every_error_has_its_place_in_the_tree():
    defined = {c for c in vars(errors).values() if isinstance(c, type)}
    assert defined == set(TREE)
    assert all(child.__bases__ == (parent,) for child, parent in TREE.items())


def test_the_drawing_shows_every_error():
    drawn = set(re.findall(r"\w+Error", errors.__doc__ or ""))
    assert drawn == {c.__name__ for c in TREE}


def test_a_missing_tool_carries_its_name_and_the_command():
    error = MissingToolError("onnxruntime", "pip install x")
    assert (error.tool, error.install) == ("onnxruntime", "pip install x")
    assert "onnxruntime" in str(error)
    assert "pip install x" in str(error)


@pytest.mark.parametrize("kind", [c for c in TREE if c is not MissingToolError])
def test_a_message_is_kept(kind):
    assert str(kind("what came")) == "what came"
