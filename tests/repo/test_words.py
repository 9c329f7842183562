"""No tracked file mentions the machine on which it was written."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# Put together here so that this file does not mention them itself.
FOLDERS = "|".join(["work", "root", "opt", "home"])
PATHS = re.compile(rf"(?<![\w.:/~-])/(?:{FOLDERS})/[\w.]")
HOSTS = re.compile(
    "|".join(
        [
            r"files\.python" + "hosted",
            r"pypi" + r"\.org/simple",
            r"extra-index" + "-url",
            r"artifac" + "tory",
            r"pypi" + "-more",
        ]
    )
)
REMOTE = re.compile(r"https?://(?:10\.|127\.|192\.168\.|local" + "host)")


def tracked() -> list[Path]:
    """Returns the files of the clone, those that are about to be added as well."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    ).stdout.decode()
    return [ROOT / name for name in listed.split("\0") if name and (ROOT / name).is_file()]


def mentions(text: str) -> list[str]:
    """Returns what betrays a machine."""
    return [m.group() for pattern in (PATHS, HOSTS, REMOTE) for m in pattern.finditer(text)]


def test_no_tracked_file_mentions_a_machine():
    found = {}
    for path in tracked():
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        betrayed = mentions(text)
        if betrayed:
            found[str(path.relative_to(ROOT))] = betrayed[:3]
    assert not found


def test_there_are_files_to_read():
    names = {path.name for path in tracked()}
    assert {"README.md", "pyproject.toml", "test_words.py"} <= names


@pytest.mark.parametrize(
    "text",
    [
        "see /" + "work/main/x",
        "'/" + "root/.cache'",
        "--find-links=/" + "opt/wheels",
        "/" + "home/me/x",
        "pypi" + ".org/simple",
        "http://" + "127.0.0.1:8080",
    ],
)
def test_a_machine_is_recognized(text):
    assert mentions(text)


@pytest.mark.parametrize(
    "text", ["a/work/b", "../shared/work/x", "https://pypi.org/project/x", "network/", "x /workers/"]
)
def test_ordinary_words_are_not(text):
    assert not mentions(text)
