"""A command of the user's own in the place of a converter: `tool {in} {out}`."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import onnx

from trueport.adapters.converters._onnx_to_onnx import save
from trueport.adapters.float64.onnx_program import OnnxProgram
from trueport.adapters.protocols import Checkpoint, ConverterOptions
from trueport.core.errors import UsageError
from trueport.core.result import NodeRef
from trueport.core.subject import Subject
from trueport.core.taxonomy import Stage
from trueport.core.versions import package_versions
from trueport.onnxgraph.external import external_files

_LAST_LINES = 20
_LAST_BYTES = 8192
_IN, _OUT = "{in}", "{out}"


class CommandFailure(Exception):  # noqa: N818 - what a command does is a result, and no error of trueport
    """A command ended badly, or left no model.

    Attributes:
        exit_code: of the command; negative where a signal ended it.
        stderr: its last lines.
    """

    def __init__(self, message: str, exit_code: int, stderr: str) -> None:
        super().__init__(
            f"{message}; its last words:\n{stderr}" if stderr else f"{message}; it wrote nothing to stderr"
        )
        self.exit_code = exit_code
        self.stderr = stderr


class Command:
    """Runs a command on a copy of the source file; its stages cannot be told apart, so all are optimization.

    No shell is involved: the text is split as a shell would split it, and `{in}` and `{out}` become paths. The user's
    own file is never handed over.

    Args:
        text: for example `mytool --fast {in} -o {out}`.

    Raises:
        UsageError: the text cannot be split, or lacks `{in}` or `{out}`.
    """

    frameworks = frozenset({"onnx"})
    plan: tuple[tuple[Stage, str], ...] = ((Stage.OPTIMIZATION, "file that the command wrote"),)

    def __init__(self, text: str) -> None:
        try:
            self._parts = shlex.split(text)
        except ValueError as error:
            raise UsageError(f"--converter 'cmd:{text}' cannot be split into arguments: {error}") from error
        missing = [place for place in (_IN, _OUT) if not any(place in part for part in self._parts[1:])]
        if missing:
            raise UsageError(
                f"--converter 'cmd:{text}': expected {_IN} and {_OUT} among its arguments, got none with "
                f"{' and '.join(missing)}; write for example 'cmd:tool {_IN} {_OUT}'"
            )
        self.name = f"cmd:{Path(self._parts[0]).name}"

    def convert(self, subject: Subject, options: ConverterOptions) -> Iterator[Checkpoint]:
        """Yields the file that the command wrote.

        Raises:
            UsageError: there is no such command.
            CommandFailure: it ended with another exit code than 0, or its output cannot be read.
        """
        source, target = options.folder / "source" / "model.onnx", options.folder / "model.onnx"
        source.parent.mkdir()
        _put(subject, source)
        stderr = self._run(source, target, options.folder)
        try:
            model = onnx.load(str(target))
            program = OnnxProgram(model, options.input_names)
        except Exception as error:
            what = "cannot be read as ONNX" if target.exists() else "is not there"
            raise CommandFailure(f"{self.name} ended with exit code 0 and its output {what}", 0, stderr) from error
        yield Checkpoint(self.plan[0][0], self.plan[0][1], program, model=model, path=target)

    def switches(self, model: Any, options: ConverterOptions) -> None:
        """Returns nothing: there is no optimizer whose parts could be switched off."""
        del model, options

    def blame(self, error: BaseException) -> tuple[NodeRef, ...]:
        """Returns nothing: a command tells no operators."""
        del error
        return ()

    def versions(self) -> dict[str, str]:
        """Returns the version of onnx, which reads the file; that of a command is not known."""
        return package_versions("onnx")

    def _run(self, source: Path, target: Path, folder: Path) -> str:
        """Runs the command and returns the end of what it wrote to stderr."""
        parts = [part.replace(_IN, str(source)).replace(_OUT, str(target)) for part in self._parts]
        words = folder / "stderr.txt"
        with words.open("wb") as stderr:
            try:
                ended = subprocess.run(  # noqa: S603 - the command is the user's own, and no shell reads it
                    parts, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=stderr, check=False
                )
            except OSError as error:
                raise UsageError(
                    f"--converter: the command '{self._parts[0]}' cannot be started: {error.strerror}; give the "
                    "path of a program, or put it on the PATH"
                ) from error
        last = _end(words)
        if ended.returncode:
            how = f"exit code {ended.returncode}" if ended.returncode > 0 else f"signal {-ended.returncode}"
            raise CommandFailure(f"{self.name} ended with {how}", ended.returncode, last)
        return last


def _put(subject: Subject, target: Path) -> None:
    """Copies the file of the subject with its external data, or writes its model where it has no file."""
    if subject.path is None:
        save(subject.model, target)
        return
    for relative in external_files(subject.path):
        place = target.parent / relative
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(subject.path.parent / relative, place)
    shutil.copyfile(subject.path, target)


def _end(file: Path) -> str:
    with file.open("rb") as stream:
        stream.seek(max(0, file.stat().st_size - _LAST_BYTES))
        lines = stream.read().decode(errors="replace").splitlines()
    return "\n".join(lines[-_LAST_LINES:])
