"""How a request in a worker ended, as a value."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from trueport.core.errors import MissingToolError, SourceError, StoreError, ToolError, UsageError

_RAISED_AGAIN = {error.__name__: error for error in (UsageError, SourceError, ToolError, StoreError)}


class Ending(StrEnum):
    """What became of a request."""

    RESULT = "result"
    USAGE_ERROR = "usage-error"
    TOOL_ERROR = "tool-error"
    MISSING_TOOL = "missing-tool"
    STORE_ERROR = "store-error"
    ERROR = "error"
    EXITED = "exited"
    SIGNAL = "signal"
    TIMEOUT = "timeout"
    MEMORY = "memory"


class RemoteError(RuntimeError):
    """An exception that is no result left the code in the worker; the message carries the worker's own traceback."""


@dataclass(frozen=True)
class Outcome:
    """One request's ending with everything that is known about it.

    Attributes:
        kind: the ending.
        value: what the target returned; None for every kind but `RESULT`.
        message: one line for people; empty for `RESULT`.
        exception_type: qualified name of the exception, where one was seen.
        traceback: Python stack of the exception, of the fatal signal, or of the moment at which a limit struck.
        arguments: constructor arguments of a `MissingToolError`.
        signal: name such as `SIGSEGV` for `SIGNAL`.
        exit_code: for `EXITED`.
        events: what the target emitted, in order.
        peak_memory_mb: largest resident size seen of the worker's process tree, in MiB; None where unknown.
        elapsed_s: wall-clock time of the request, including the worker's start where it had to be started.
        stdout_tail: the end of what the request wrote to standard output.
        stderr_tail: the same of standard error.
    """

    kind: Ending
    value: dict[str, Any] | None = None
    message: str = ""
    exception_type: str = ""
    traceback: str = ""
    arguments: tuple[str, ...] = ()
    signal: str = ""
    exit_code: int | None = None
    events: tuple[dict[str, Any], ...] = ()
    peak_memory_mb: float | None = None
    elapsed_s: float = 0.0
    stdout_tail: str = ""
    stderr_tail: str = ""

    @property
    def output_tail(self) -> str:
        """Returns both tails, standard output first."""
        between = "\n" if self.stdout_tail and self.stderr_tail and not self.stdout_tail.endswith("\n") else ""
        return f"{self.stdout_tail}{between}{self.stderr_tail}"

    def reraise(self) -> None:
        """Raises what the code in the worker raised; returns for results and for endings of the process.

        Raises:
            UsageError, SourceError, ToolError, MissingToolError, StoreError: as raised in the worker.
            RemoteError: any other exception, with its traceback.
        """
        if self.kind is Ending.MISSING_TOOL:
            raise MissingToolError(*self.arguments)
        if self.kind in (Ending.USAGE_ERROR, Ending.TOOL_ERROR, Ending.STORE_ERROR):
            raise _RAISED_AGAIN[self.exception_type](self.message)
        if self.kind is Ending.ERROR:
            raise RemoteError(f"{self.exception_type}: {self.message}\n\nin the worker:\n{self.traceback}")
