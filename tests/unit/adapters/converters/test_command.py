"""A command of the user's own: what it is given, and what its failures look like."""

import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import parser

from trueport.adapters.converters import converter
from trueport.adapters.converters.command import Command, CommandFailure
from trueport.adapters.protocols import Checkpoint, ConverterOptions
from trueport.core.errors import UsageError
from trueport.core.subject import Example, Subject
from trueport.core.taxonomy import Stage

TEXT = '<ir_version: 8, opset_import: ["": 18]> g (float[2] x) => (float[2] y) { y = Relu (x) }'


def subject(path: Path | None = None) -> Subject:
    model = onnx.ModelProto()
    model.CopyFrom(parser.parse_model(TEXT))
    if path is not None:
        onnx.save(model, str(path))
    example = Example(kwargs={"x": np.ones(2, np.float32)})
    return Subject("g", "onnx", "<object>", "0", model, (example,), path=path)


def run(command: str, folder: Path, given: Subject | None = None) -> list[Checkpoint]:
    return list(converter(f"cmd:{command}").convert(given or subject(), ConverterOptions(folder, None, ("x",))))


def script(folder: Path, text: str) -> str:
    file = folder / "a tool.py"
    file.write_text(text)
    return f"'{sys.executable}' '{file}' {{in}} {{out}}"


def test_the_file_that_it_writes_is_the_checkpoint(tmp_path: Path) -> None:
    folder = tmp_path / "made"
    folder.mkdir()
    (checkpoint,) = run("cp {in} {out}", folder)
    assert checkpoint.stage is Stage.OPTIMIZATION
    assert checkpoint.path == folder / "model.onnx"
    assert Command("/bin/cp {in} {out}").name == "cmd:cp"


def test_the_users_own_file_is_never_handed_over(tmp_path: Path) -> None:
    folder = tmp_path / "made"
    folder.mkdir()
    given = subject(tmp_path / "mine.onnx")
    before = (tmp_path / "mine.onnx").read_bytes()
    tool = script(
        tmp_path,
        "import shutil, sys\nshutil.copy(sys.argv[1], sys.argv[2])\nopen(sys.argv[1], 'wb').write(b'spoiled')\n",
    )
    run(tool, folder, given)
    assert (tmp_path / "mine.onnx").read_bytes() == before


def test_no_shell_reads_it(tmp_path: Path) -> None:
    folder = tmp_path / "made"
    folder.mkdir()
    run(
        script(tmp_path, "import shutil, sys\nshutil.copy(sys.argv[1], sys.argv[2])\n") + " '; touch pwned' $(x)",
        folder,
    )
    assert not list(Path.cwd().glob("pwned"))


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        ("import sys\nprint('no such layer', file=sys.stderr)\nsys.exit(3)\n", 3, "exit code 3.*\n.*no such layer"),
        ("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n", -9, "signal 9"),
        ("pass\n", 0, "its output is not there"),
        ("import sys\nopen(sys.argv[2], 'wb').write(b'\\x08')\n", 0, "cannot be read as ONNX"),
    ],
)
def test_its_failure_says_how_it_ended(text: str, code: int, message: str, tmp_path: Path) -> None:
    folder = tmp_path / "made"
    folder.mkdir()
    with pytest.raises(CommandFailure, match=message) as raised:
        run(script(tmp_path, text), folder)
    assert raised.value.exit_code == code


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("cp {in} somewhere", "got none with {out}"),
        ("cp", "got none with {in} and {out}"),
        ("", "got none with"),
        ("cp '{in} {out}", "cannot be split"),
    ],
)
def test_a_text_that_is_no_command_is_refused(command: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        converter(f"cmd:{command}")


def test_a_command_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be started"):
        run("no-such-tool-here {in} {out}", tmp_path)
