"""What `trueport check` writes where, and with which exit code it ends."""

from __future__ import annotations

import dataclasses
import json
import os
import stat
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.golden import check_results
from trueport.cli.output import write_json
from trueport.core.errors import MissingToolError, SourceError, StoreError, ToolError, UsageError
from trueport.core.result import CheckResult


@pytest.mark.parametrize(("name", "code"), [("faithful", 0), ("divergent", 1), ("crashed", 1), ("inconclusive", 3)])
def test_exit_code(trueport, api, name, code):
    api.result = getattr(check_results, name)()
    outcome = trueport("check", "m.py")
    assert outcome.exit_code == code
    assert outcome.stderr == ""
    assert all(line == line.rstrip() for line in outcome.stdout.splitlines())


def unmaterial(result: CheckResult) -> CheckResult:
    checks = [
        dataclasses.replace(c, findings=tuple(dataclasses.replace(f, material=False) for f in c.findings))
        for c in result.checks
    ]
    return dataclasses.replace(result, checks=tuple(checks))


@pytest.mark.parametrize(
    ("result", "fail_on", "code"),
    [
        (check_results.divergent(), "crashed", 0),
        (check_results.divergent(), "divergent", 1),
        (check_results.divergent(), "divergent,material", 1),
        (check_results.divergent(), "material", 1),
        (unmaterial(check_results.divergent()), "divergent,material", 0),
        (unmaterial(check_results.divergent()), "divergent", 1),
        (check_results.crashed(), "divergent", 0),
        (check_results.crashed(), "material", 0),
        (check_results.crashed(), "crashed,inconclusive", 1),
        (check_results.inconclusive(), "divergent,crashed", 0),
        (check_results.inconclusive(), "inconclusive", 3),
        (CheckResult(check_results.SUBJECT, (), 3), "divergent", 3),
    ],
)
def test_fail_on(trueport, api, result, fail_on, code):
    api.result = result
    assert trueport("check", "m.py", "--fail-on", fail_on).exit_code == code


def test_a_worse_verdict_is_not_hidden_by_one_that_does_not_count(trueport, api):
    checks = (*check_results.inconclusive().checks, *check_results.divergent().checks)
    api.result = check_results.result(*checks)
    assert trueport("check", "m.py", "--fail-on", "inconclusive").exit_code == 3
    assert trueport("check", "m.py").exit_code == 1


def test_json_on_standard_output_is_alone_there(trueport, api):
    api.result = check_results.divergent()
    api.events = [{"event": "stage", "stage": "export", "checkpoint": "file"}, {"event": "other"}]
    outcome = trueport("check", "m.py", "--json", "-")
    assert CheckResult.from_json(outcome.stdout) == api.result
    assert outcome.exit_code == 1
    assert outcome.stderr == ""


def test_what_a_model_prints_stays_out_of_the_result(trueport, api):
    api.noise = "{}\n"
    outcome = trueport("check", "m.py", "--json", "-", "--no-isolate")
    assert CheckResult.from_json(outcome.stdout) == api.result
    assert outcome.stderr == "{}\n"


def test_json_to_a_file_beside_the_text(trueport, api, folder):
    outcome = trueport("check", "m.py", "--json", "out.json")
    assert CheckResult.from_json((folder / "out.json").read_text()) == api.result
    assert outcome.stdout.startswith("models.py:net")
    assert not [path for path in folder.iterdir() if path.name.startswith(".out")]


def test_json_file_has_the_usual_permissions_and_follows_links(tmp_path):
    (tmp_path / "link.json").symlink_to(tmp_path / "real.json")
    write_json("{}", str(tmp_path / "link.json"))
    assert (tmp_path / "link.json").is_symlink()
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE((tmp_path / "real.json").stat().st_mode) == 0o666 & ~mask


def test_json_to_a_device_leaves_the_device():
    write_json("{}", "/dev/null")
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)


def test_json_that_cannot_be_written(tmp_path, monkeypatch):
    def refuse(self, *arguments, **options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pathlib.Path.write_text", refuse)
    with pytest.raises(UsageError, match="No space left"):
        write_json("{}", str(tmp_path / "x.json"))


def test_quiet_is_one_line_per_check(trueport, api):
    api.result = check_results.divergent()
    assert len(trueport("check", "m.py", "-q").stdout.splitlines()) == 2


def test_verbose_shows_evidence(trueport, api):
    api.result = check_results.divergent()
    assert "GeluFusion" not in trueport("check", "m.py").stdout
    assert "GeluFusion" in trueport("check", "m.py", "-v").stdout


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (UsageError("no such\nfile"), 2),
        (SourceError("the source fails \x1b[2K"), 2),
        (MissingToolError("openvino", "pip install openvino"), 2),
        (StoreError("unreadable"), 2),
        (ToolError("the runtime failed"), 3),
        (ZeroDivisionError("a bug"), 70),
        (KeyboardInterrupt(), 130),
        (SystemExit(0), 3),
    ],
)
def test_errors(trueport, api, error, code):
    api.error = error
    outcome = trueport("check", "m.py")
    assert outcome.exit_code == code
    assert outcome.stdout == ""
    assert "trueport: error: " in outcome.stderr
    assert "\x1b" not in outcome.stderr
    assert ("Traceback" in outcome.stderr) == (code == 70)


def test_interrupt_says_nothing_else(trueport, api):
    api.error = KeyboardInterrupt()
    assert trueport("check", "m.py").stderr.strip() == "trueport: error: interrupted"


def test_reader_that_goes_away_does_not_change_the_exit_code(folder):
    script = """
        import sys
        from tests.golden import check_results
        import trueport.api
        trueport.api.check_path = lambda *a, **k: check_results.inconclusive()
        from trueport.cli import main
        input()
        sys.exit(main(["check", "m.py", *sys.argv[1:]]))
    """
    for arguments, more in (([], {}), ([], {"FORCE_COLOR": "1"}), (["--json", "-"], {})):
        with subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(script), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **more},
        ) as process:
            process.stdout.close()
            process.stdin.write(b"\n")
            process.stdin.close()
            assert process.wait(30) == 3
            assert process.stderr.read() == b""


def test_name_that_the_encoding_of_the_terminal_lacks(folder):
    script = """
        import sys, dataclasses
        from tests.golden import check_results
        import trueport.api
        result = check_results.faithful()
        subject = dataclasses.replace(result.subject, name="模型.py:net")
        result = dataclasses.replace(result, subject=subject)
        trueport.api.check_path = lambda *a, **k: result
        from trueport.cli import main
        sys.exit(main(["check", "m.py"]))
    """
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONIOENCODING": "ascii"}
    outcome = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, env=environment, check=False
    )
    assert (outcome.returncode, outcome.stderr) == (0, b"")
    assert outcome.stdout.startswith(rb"\u6a21\u578b.py:net")


def test_zoo(trueport, api):
    from types import SimpleNamespace

    api.rows = [SimpleNamespace(name="zoo:hf/bert", description="BERT [bold]", missing="transformers")]
    assert "zoo:hf/bert  BERT [bold]  transformers" in trueport("zoo").stdout
    assert json.loads(trueport("zoo", "--json").stdout) == [
        {"name": "zoo:hf/bert", "description": "BERT [bold]", "missing": "transformers"}
    ]
