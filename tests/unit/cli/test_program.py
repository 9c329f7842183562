"""The program itself: help, version, names of commands, and what it costs to ask."""

from __future__ import annotations

import os
import subprocess
import sys

import click
import pytest

from trueport import __version__
from trueport.cli import cli, main

HEAVY = ("rich", "psutil", "numpy", "scipy", "onnx", "torch", "onnxruntime", "subprocess", "asyncio")


def run(*arguments: str, python: tuple[str, ...] = ("-m", "trueport")) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *python, *arguments], capture_output=True, text=True, check=False)


def test_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"trueport {__version__}\n"


def test_module_is_the_program():
    outcome = run("--version")
    assert (outcome.returncode, outcome.stdout) == (0, f"trueport {__version__}\n")
    assert run("check").returncode == 2


def test_help_names_all_commands(capsys):
    assert main(["--help"]) == 0
    text = capsys.readouterr().out
    assert all(name in text for name in cli.lazy)


def test_nothing_asked_is_no_success(capsys):
    assert main([]) == 2
    assert "Usage:" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["model.py"], ["--nonsense"], ["check", "--nonsense"]])
def test_wrong_command_or_option(arguments, capsys):
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("trueport: error: ")


@pytest.mark.parametrize("name", cli.lazy)
def test_lazy_entries_are_true(name):
    command = cli.get_command(click.Context(cli), name)
    assert command.name == name
    assert command.get_short_help_str(200) == cli.lazy[name][1]


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["check", "--help"]])
def test_asking_imports_nothing_heavy(arguments):
    code = (
        "import sys\nfrom trueport.cli import main\n"
        f"main({arguments!r})\nprint([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)"
    )
    assert run(python=("-c", code)).stderr.strip() == "[]"


def test_help_costs_less_than_three_tenths_of_a_second():
    def cpu_s() -> float:
        before = os.times()
        assert run("--help").returncode == 0
        after = os.times()
        return after.children_user + after.children_system - before.children_user - before.children_system

    assert min(cpu_s() for _ in range(3)) < 0.3
