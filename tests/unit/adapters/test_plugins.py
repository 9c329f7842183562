"""Adapters of other packages are found by their entry points, and cannot take the place of ours."""

from __future__ import annotations

from importlib.metadata import EntryPoint

import pytest

from trueport.adapters import converters, plugins, runtimes
from trueport.adapters.sources import registry
from trueport.core.errors import MissingToolError, ToolError, UsageError


class Theirs:
    name = "theirs"
    frameworks = frozenset({"onnx"})

    def __init__(self, **settings):
        self.settings = settings


THEIR_KIND = registry.SourceKind("theirs", "model.theirs", r".*\.theirs", "tests.unit.adapters.test_plugins")
NO_KIND = 3


@pytest.fixture
def announce(monkeypatch):
    """Announces entry points as an installed package would."""

    def points(*found):
        plugins.announced.cache_clear()
        made = [EntryPoint(name, f"{__name__}:{attribute}", group) for name, attribute, group in found]
        monkeypatch.setattr(plugins, "entry_points", lambda group: [p for p in made if p.group == group])

    yield points
    plugins.announced.cache_clear()


def test_a_converter_of_another_package_is_made(announce):
    announce(("theirs", "Theirs", converters.GROUP))
    assert isinstance(converters.converter("theirs"), Theirs)
    assert "theirs" in converters.names()


def test_a_runtime_of_another_package_gets_its_settings(announce):
    announce(("theirs", "Theirs", runtimes.GROUP))
    made = runtimes.runtime("theirs", provider=None, threads=2)
    assert made.settings == {"provider": None, "threads": 2}


def test_a_source_kind_of_another_package_is_asked_last(announce):
    announce(("theirs", "THEIR_KIND", registry.GROUP))
    assert registry.source_kind("model.theirs") is THEIR_KIND
    assert registry.source_kind("model.onnx").name == "ONNX file"
    with pytest.raises(UsageError, match=r"model\.theirs; got 'model\.foreign'"):
        registry.source_kind("model.foreign")


def test_an_entry_point_that_is_no_source_kind_is_refused(announce):
    announce(("theirs", "NO_KIND", registry.GROUP))
    with pytest.raises(ToolError, match="to be a SourceKind, got int"):
        registry.source_kind("model.foreign")


def test_a_name_of_ours_is_not_taken_over(announce):
    announce(("onnxruntime", "Theirs", runtimes.GROUP))
    assert type(runtimes.runtime("onnxruntime", provider=None, threads=1)).__name__ == "OnnxRuntime"


def test_one_name_twice_is_an_error(announce):
    announce(("theirs", "Theirs", converters.GROUP), ("theirs", "Other", converters.GROUP))
    with pytest.raises(ToolError, match="two packages announce 'theirs'"):
        converters.converter("theirs")


def test_an_adapter_that_cannot_be_loaded_names_its_entry_point(announce):
    announce(("broken", "NotThere", converters.GROUP))
    with pytest.raises(ToolError, match=r"'broken'.*NotThere.*cannot be loaded"):
        converters.converter("broken")


def test_an_unknown_name_lists_all(announce):
    announce(("theirs", "Theirs", converters.GROUP))
    with pytest.raises(UsageError, match=r"no converter is called 'x'; there are: torch-dynamo.*theirs.*cmd:tool"):
        converters.converter("x")


def test_a_missing_library_is_told_with_its_command(monkeypatch):
    own = {"absent": ("trueport_has_no_such_module:Thing", "pip install thing")}
    with pytest.raises(MissingToolError, match="pip install thing"):
        plugins.adapter("converter", "absent", own, "no.such.group")
