"""Where a result goes: text on standard output, JSON to a file, and the exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from trueport.core.errors import UsageError
from trueport.core.result import Check, CheckResult, exit_code
from trueport.core.taxonomy import Verdict

if TYPE_CHECKING:
    from rich.console import RenderableType

_WIDTH = 100


def verdict_exit_code(result: CheckResult, fail_on: Collection[str]) -> int:
    """Returns the exit code of a result when only the verdicts named in `fail_on` count.

    `material` counts `divergent` only where a finding is material, that is, shows outside what rounding hides.
    """
    if not result.checks:
        return exit_code([])
    return exit_code([check.verdict if _counts(check, fail_on) else Verdict.FAITHFUL for check in result.checks])


def _counts(check: Check, fail_on: Collection[str]) -> bool:
    if check.verdict is Verdict.DIVERGENT and "material" in fail_on:
        return any(finding.material for finding in check.findings)
    return check.verdict in fail_on


def print_text(renderable: RenderableType) -> None:
    """Prints to standard output, as wide as the terminal but not wider than reads well."""
    from rich.console import Console

    class Terminal(Console):
        def on_broken_pipe(self) -> None:
            # rich would leave with exit code 1, which is a verdict here.
            raise BrokenPipeError

    terminal = Terminal(highlight=False, markup=False, emoji=False)
    if not terminal.is_terminal or terminal.width > _WIDTH:
        terminal.width = _WIDTH
    if terminal.is_terminal:
        _written(lambda: terminal.print(renderable, crop=False))
        return
    with terminal.capture() as captured:
        terminal.print(renderable, crop=False)
    # Tables and paragraphs are padded to their full width, which is noise in a file.
    print_line("\n".join(line.rstrip() for line in captured.get().split("\n")).rstrip("\n"))


def print_line(text: str) -> None:
    """Writes one text to standard output as it is."""

    def write() -> None:
        sys.stdout.write(text + "\n")
        sys.stdout.flush()

    _written(write)


def _written(write: Callable[[], None]) -> None:
    """Lets a reader that has seen enough (`| head`) go without changing the exit code."""
    try:
        write()
    except BrokenPipeError:
        with suppress(OSError):
            # The interpreter flushes once more at its end and would complain.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def write_json(text: str, target: str) -> None:
    """Writes JSON to standard output (`-`) or to a file that is never seen half-written.

    Raises:
        UsageError: the file cannot be written.
    """
    if target == "-":
        print_line(text)
        return
    file = Path(target).resolve()
    try:
        if file.exists() and not file.is_file():
            # A device or a pipe cannot be replaced by renaming.
            file.write_text(text + "\n", encoding="utf-8")
            return
        temporary = file.with_name(f".{file.name}.{os.getpid()}.part")
        try:
            temporary.write_text(text + "\n", encoding="utf-8")
            temporary.replace(file)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise UsageError(f"cannot write '{target}': {error.strerror or error}") from error
