from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from tests.golden import check_results
from trueport.cli import cli


class FakeApi:
    """Stands in for `trueport.api`: remembers what it was asked and returns what it was told to."""

    def __init__(self) -> None:
        self.result = check_results.faithful()
        self.error: BaseException | None = None
        self.events: list[dict] = []
        self.noise = ""
        self.calls: list[tuple] = []
        self.rows: list[SimpleNamespace] = []

    def check_path(self, model, options, *, on_event=None):
        self.calls.append((model, options))
        sys.stdout.write(self.noise)
        for event in self.events:
            on_event(event)
        if self.error is not None:
            raise self.error
        return self.result

    def list_zoo(self):
        return tuple(self.rows)


@pytest.fixture
def api(monkeypatch) -> FakeApi:
    fake = FakeApi()
    monkeypatch.setattr("trueport.api.check_path", fake.check_path)
    monkeypatch.setattr("trueport.api.list_zoo", fake.list_zoo)
    return fake


@pytest.fixture
def folder(tmp_path: Path, monkeypatch) -> Path:
    """The current folder, with files that options can name and no pyproject.toml above it."""
    for name in ("c.onnx", "in.npz", "in.py", "metric.py", "data.bin"):
        (tmp_path / name).write_bytes(b"")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def trueport(api: FakeApi, folder: Path):
    def call(*arguments: str):
        return CliRunner().invoke(cli, list(arguments))

    return call
