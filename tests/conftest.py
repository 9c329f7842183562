"""What all tests share: golden files and the check that nothing is left behind."""

from __future__ import annotations

import os
import secrets
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

_WAIT_S = 15.0
_VARIABLE = "TRUEPORT_TEST_MARK"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="rewrite the golden files from what was rendered")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Compares a text with `golden/<name>`, or writes that file under --update-golden."""

    def compare(name: str, text: str) -> None:
        file = Path(__file__).parent / "golden" / name
        if request.config.getoption("--update-golden"):
            file.write_text(text, encoding="utf-8")
        assert text == file.read_text(encoding="utf-8"), "if the new text is right, run pytest with --update-golden"

    return compare


def _marked(mark: str) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get(_VARIABLE) == mark and process.pid != os.getpid():
                found.append(process)
        except psutil.Error:
            continue
    return found


@pytest.fixture
def no_leftovers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Fails a test that leaves processes (found by their environment), zombies or temporary files behind."""
    mark = secrets.token_hex(8)
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv(_VARIABLE, mark)
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    children = {child.pid for child in psutil.Process().children()}
    yield folder
    deadline = time.monotonic() + _WAIT_S
    while (_marked(mark) or list(folder.iterdir())) and time.monotonic() < deadline:
        time.sleep(0.02)
    left = _marked(mark)
    for process in left:
        process.kill()
    assert not left
    assert not list(folder.iterdir())
    assert {child.pid for child in psutil.Process().children()} <= children
