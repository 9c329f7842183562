"""Defaults from the nearest pyproject.toml, and what it may not say."""

from __future__ import annotations

import pytest

from trueport.core.options import CheckOptions, DynamicAxis


def write(folder, body: str) -> None:
    (folder / "pyproject.toml").write_text(f"[tool.trueport]\n{body}\n")


def test_defaults_of_each_form(trueport, api, folder):
    write(
        folder,
        """
        runtime = ["onnxruntime", "onnx-reference"]
        converter = "torch-script,torch-dynamo"
        samples = 5
        timeout = 20
        memory-mb = "none"
        nonfinite = true
        dynamic = ["x:0=n:1-4", "y:0=n:1-4"]
        input_shape = "x:[1,2]"
        fail-on = ["crashed"]
        inputs = "in.npz"
        """,
    )
    assert trueport("check", "m.py").exit_code == 0
    assert api.calls[0][1] == CheckOptions(
        runtimes=("onnxruntime", "onnx-reference"),
        converters=("torch-script", "torch-dynamo"),
        samples=5,
        timeout_s=20.0,
        memory_mb=None,
        nonfinite=True,
        dynamic=(DynamicAxis("x", 0, "n", 1, 4), DynamicAxis("y", 0, "n", 1, 4)),
        input_shapes={"x": (1, 2)},
        inputs=str(folder / "in.npz"),
    )


def test_the_command_line_wins(trueport, api, folder):
    write(folder, "samples = 5\nruntime = 'onnx-reference'")
    trueport("check", "m.py", "--samples", "2", "--runtime", "onnxruntime")
    assert api.calls[0][1] == CheckOptions(samples=2)


def test_the_nearest_file_is_the_one_and_paths_are_relative_to_it(trueport, api, folder, monkeypatch):
    write(folder, "inputs = 'in.py:examples'")
    below = folder / "a" / "b"
    below.mkdir(parents=True)
    monkeypatch.chdir(below)
    trueport("check", "m.py")
    assert api.calls[0][1].inputs == str(folder / "in.py:examples")
    (folder / "a" / "pyproject.toml").write_text("[project]\nname = 'x'\n")
    trueport("check", "m.py")
    assert api.calls[1][1] == CheckOptions()


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("sampels = 3", "no such option; the nearest one is 'samples'"),
        ("tolerances = 3", "the nearest one is 'tolerance'"),
        ("trust-pickle = true", "on the command line only"),
        ("trust_pickle = true", "on the command line only"),
        ("no-isolate = true", "on the command line only"),
        ("samples = 0", "samples: 0 is not in the range"),
        ("samples = 'many'", "'many' is not a valid integer"),
        ("samples = true", "got True"),
        ("nonfinite = 1", "expected true or false"),
        ("dynamic = ['x']", "such as 'x:0=batch'"),
        ("dynamic = {x = 1}", "expected a string"),
        ("fail-on = 'all'", "'all'"),
        ("inputs = 'gone.npz'", "does not exist"),
        ("samples =", "expected a TOML file"),
    ],
)
def test_mistakes_name_file_and_key(trueport, api, folder, body, message):
    write(folder, body)
    outcome = trueport("check", "m.py")
    assert outcome.exit_code == 2
    assert message in outcome.stderr
    assert str(folder / "pyproject.toml") in outcome.stderr
    assert outcome.stderr.count("\n") == 1
    assert api.calls == []


def test_table_that_is_no_table(trueport, folder):
    (folder / "pyproject.toml").write_text("tool.trueport = 3\n")
    assert "expected a table" in trueport("check", "m.py").stderr


def test_help_works_beside_a_broken_file(trueport, folder):
    write(folder, "sampels = 3")
    assert trueport("check", "--help").exit_code == 0
