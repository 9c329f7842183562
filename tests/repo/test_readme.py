"""Every command in the README and in docs/ exists, and its output there is what it really prints.

A block marked `console` holds commands after `$ `, each followed by its output; they run in a folder that holds a copy
of examples/. Times and package versions may differ. `--update-golden` writes the real output into the pages.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from trueport.cli import cli

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CHANGING = re.compile(r"\d+(\.\d+)? m?s\b|\d[\d,]* MiB")


@dataclass
class Command:
    line: str
    output: list[str] = field(default_factory=list)


def commands(block: str) -> list[Command]:
    found: list[Command] = []
    for line in block.splitlines():
        if line.startswith("$ "):
            found.append(Command(line[2:]))
        else:
            found[-1].output.append(line)
    return found


BLOCKS = [(page, block) for page in PAGES for block in BLOCK.findall(page.read_text(encoding="utf-8"))]
LINES = [(page, command.line) for page, block in BLOCKS for command in commands(block)]


def name_of(value: object) -> str | None:
    return value.relative_to(ROOT).as_posix() if isinstance(value, Path) else None


def comparable(text: str) -> list[str]:
    """Returns what must be equal: without the versions, which go over two lines, times and widths of columns."""
    kept, skipping = [], False
    for line in text.splitlines():
        skipping = line.startswith("  versions ") or (skipping and line.startswith(" " * 14))
        if not skipping:
            kept.append(" ".join(CHANGING.sub("TIME", line).split()))
    return "\n".join(kept).strip().split("\n")


def run(line: str, folder: Path) -> str:
    words = shlex.split(line)
    if words[:2] == ["echo", "$?"]:
        return (folder / ".code").read_text()
    program = {"trueport": [sys.executable, "-m", "trueport"], "python": [sys.executable]}[words[0]]
    environment = {**os.environ, "PYTHONWARNINGS": "ignore", "COLUMNS": "100"}
    done = subprocess.run(
        [*program, *words[1:]], cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    (folder / ".code").write_text(f"{done.returncode}\n")
    assert done.returncode in (0, 1, 2, 3), done.stderr
    return (done.stderr if done.returncode == 2 else "") + (done.stdout if words[0] == "trueport" else "")


def test_there_are_commands_to_check():
    assert {page.name for page, _ in LINES} >= {"README.md", "first-check.md", "check-a-model.md"}
    assert len(LINES) > 8


@pytest.mark.parametrize(("page", "line"), LINES, ids=name_of)
def test_commands_exist(page, line):
    """Parses every option, so that one that was renamed is noticed at once; the models are not run."""
    words = shlex.split(line)
    if words[0] != "trueport":
        assert words[:2] == ["echo", "$?"] or (ROOT / words[1]).is_file()
        return
    command = cli.get_command(None, words[1])
    assert command is not None
    options = {"--help", *(name for option in command.params for name in option.opts)}
    assert {word for word in words[2:] if word.startswith("-") and word != "-"} <= options
    for word in words[2:]:
        if word.startswith("examples/"):
            assert (ROOT / word.partition(":")[0]).is_file()


@pytest.mark.parametrize("script", sorted(set(re.findall(r"scripts/\w+", "".join(p.read_text() for p in PAGES)))))
def test_scripts_exist(script):
    assert os.access(ROOT / script, os.X_OK)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
        assert target.startswith("https://") or (page.parent / target).exists(), target


def test_the_readme_installs_by_line_15_and_shows_a_real_output_by_line_30():
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    assert any("pip install" in line for line in lines[:15])
    first = next(number for number, line in enumerate(lines, start=1) if line.startswith("$ trueport check"))
    assert first < 30
    assert lines[first].startswith("floor_division")


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("page", list(dict.fromkeys(page for page, _ in BLOCKS)), ids=name_of)
def test_outputs_are_real(page, tmp_path, request):
    shutil.copytree(ROOT / "examples", tmp_path / "examples", ignore=shutil.ignore_patterns("__pycache__"))
    text = page.read_text(encoding="utf-8")
    for block in BLOCK.findall(text):
        fresh = []
        for command in commands(block):
            output = run(command.line, tmp_path)
            fresh += [f"$ {command.line}", *output.rstrip().splitlines()]
            if not request.config.getoption("--update-golden"):
                assert comparable("\n".join(command.output)) == comparable(output), command.line
        text = text.replace(f"```console\n{block}```", "```console\n" + "\n".join(fresh) + "\n```")
    if request.config.getoption("--update-golden"):
        page.write_text(text, encoding="utf-8")
