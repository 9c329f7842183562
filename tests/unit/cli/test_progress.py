"""Progress is for people who wait at a terminal, and only for them."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import textwrap

import pytest

from trueport.cli.progress import ProgressDisplay

SCRIPT = """
    import sys, time
    from trueport.cli.progress import ProgressDisplay
    with ProgressDisplay(enabled={enabled}, patience_s={patience_s}) as progress:
        progress.on_event({{"event": "phase", "name": "loading \\x1b[2K"}})
        time.sleep(0.4)
        progress.on_event({{"event": "stage", "stage": "export", "checkpoint": "the file"}})
        time.sleep(0.4)
"""


def on_a_terminal(*, enabled: bool = True, patience_s: float = 0.0) -> str:
    ours, theirs = os.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(SCRIPT.format(enabled=enabled, patience_s=patience_s))],
        stdout=subprocess.PIPE,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "100"},
    ) as process:
        os.close(theirs)
        seen = b""
        while True:
            try:
                data = os.read(ours, 65536)
            except OSError:
                break
            if not data:
                break
            seen += data
        assert process.stdout.read() == b""
        assert process.wait(10) == 0
    os.close(ours)
    return seen.decode()


def test_shown_on_a_terminal():
    seen = on_a_terminal()
    assert r"loading \x1b[2K" in seen
    assert "export: the file" in seen


@pytest.mark.parametrize("settings", [{"patience_s": 30.0}, {"enabled": False}])
def test_not_shown_before_its_time_nor_when_quiet(settings):
    assert on_a_terminal(**settings) == ""


def test_nothing_where_there_is_no_terminal(monkeypatch):
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    with ProgressDisplay(patience_s=0.0) as progress:
        progress.on_event({"event": "phase", "name": "loading"})
    assert stream.getvalue() == ""
