"""The worker's side: a fresh interpreter that performs requests until its parent is gone.

Run as `python -P -m trueport.isolation.worker REQUESTS REPLIES TRACES` with three inherited file descriptors.
"""

from __future__ import annotations

import faulthandler
import importlib
import os
import queue
import resource
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from trueport.core.errors import MissingToolError, SourceError, StoreError, ToolError, UsageError
from trueport.isolation._messages import Done, Event, Failed, Hello, Request, decode_to_worker, encode, is_allowed
from trueport.isolation._outcome import Ending

Target = Callable[[dict[str, Any], bytes | None, Callable[[dict[str, Any]], None]], dict[str, Any]]

_TEXT_LIMIT = 64 * 1024
# Reserved but untouched memory is no harm; the slack leaves the decision on slow growth to the parent, which measures
# resident pages, and keeps for this limit the single allocation that would hurt before anybody could measure it.
_RESERVE_SLACK_MB = 1024
_OUT_OF_MEMORY = (
    "can't allocate memory: you tried to allocate",  # PyTorch's DefaultCPUAllocator, a RuntimeError
    "Failed to allocate memory for requested buffer",  # ONNX Runtime's arena
    "std::bad_alloc",
)
_ENDINGS = {
    SourceError: Ending.USAGE_ERROR,
    UsageError: Ending.USAGE_ERROR,
    MissingToolError: Ending.MISSING_TOOL,
    ToolError: Ending.TOOL_ERROR,
    StoreError: Ending.STORE_ERROR,
}


class Service:
    """Performs one request after the other in the main thread; reads the next ones in another."""

    def __init__(self, requests: Connection, replies: Connection) -> None:
        self._requests = requests
        self._replies = replies
        self._inbox: queue.SimpleQueue[tuple[Request, bytes | None]] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._pid = os.getpid()
        self._allow: list[str] = []

    def run(self) -> None:
        """Serves until the parent closes its end; then this process and its group are killed."""
        hello = decode_to_worker(self._requests.recv_bytes())
        assert isinstance(hello, Hello)
        self._allow = hello.allow
        if hello.sys_path:
            sys.path[:] = hello.sys_path
        threading.Thread(target=self._read, name="trueport-requests", daemon=True).start()
        while True:
            request, blob = self._inbox.get()
            _limit_reserved_memory(request.memory_mb)
            _reset_peak_memory()
            if request.preload is None:
                self._answer(request, blob)
            else:
                self._answer_apart(request, blob, request.preload)

    def _answer(self, request: Request, blob: bytes | None) -> None:
        reply = self._perform(request, blob)
        _flush()
        self._send(reply)

    def _answer_apart(self, request: Request, blob: bytes | None, preload: list[str]) -> None:
        """Lets a fork answer, so that this process stays as it was; what ends the fork otherwise ends this one, too.

        The threads of this process are not in the fork, so nothing but imports may happen here.
        """
        for name in preload:
            importlib.import_module(name)
        _flush()
        told, tell = os.pipe()
        child = os.fork()
        if child == 0:
            self._pid = os.getpid()
            self._answer(request, blob)
            os.write(tell, b"answered")
            os._exit(0)
        os.close(tell)
        _, status = os.waitpid(child, 0)
        with os.fdopen(told, "rb") as answered:
            if not answered.read():
                _leave_like(status)

    def _read(self) -> None:
        with suppress(EOFError, OSError):
            while True:
                message = decode_to_worker(self._requests.recv_bytes())
                assert isinstance(message, Request)
                self._inbox.put((message, self._requests.recv_bytes() if message.has_blob else None))
        os.killpg(0, signal.SIGKILL)

    def _send(self, message: bytes) -> None:
        if os.getpid() != self._pid:
            # A fork of the model came back as if it were us; only the original may speak.
            os._exit(0)
        with self._lock:
            self._replies.send_bytes(message)

    def _perform(self, request: Request, blob: bytes | None) -> bytes:
        def emit(value: dict[str, Any]) -> None:
            self._send(encode(Event(request.number, value)))

        try:
            value = _resolve(request.target, self._allow)(request.payload, blob, emit)
            if not isinstance(value, dict):
                raise TypeError(f"expected a dict from {request.target}, got {type(value).__name__}")
            return encode(Done(request.number, value, _peak_memory_mb()))
        except SystemExit as error:
            return encode(_exited(request.number, error))
        except BaseException as error:  # noqa: BLE001 - whatever left the target is this request's outcome
            return encode(_failed(request.number, error))


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()


def _leave_like(status: int) -> None:
    """Ends this process as the one with this wait status ended."""
    if os.WIFSIGNALED(status):
        faulthandler.disable()  # the stacks of the fork are written already
        signal.signal(os.WTERMSIG(status), signal.SIG_DFL)
        os.kill(os.getpid(), os.WTERMSIG(status))
    os._exit(os.waitstatus_to_exitcode(status))


def _resolve(target: str, allow: list[str]) -> Target:
    if not is_allowed(target, allow):
        raise PermissionError(f"expected a target under trueport., got '{target}'")
    module, _, name = target.partition(":")
    function: Target = getattr(importlib.import_module(module), name)
    return function


def _exited(number: int, error: SystemExit) -> Failed:
    if error.code is None or isinstance(error.code, int):
        code, said = int(error.code or 0), ""
    else:
        code, said = 1, f": {_text(error.code)}"
    return Failed(
        number=number,
        ending=Ending.EXITED,
        message=f"called sys.exit with code {code}{said}",
        exception_type="SystemExit",
        traceback=_stack(error),
        arguments=[],
        exit_code=code,
        peak_memory_mb=_peak_memory_mb(),
    )


def _failed(number: int, error: BaseException) -> Failed:
    known = next((base for base in type(error).__mro__ if base in _ENDINGS), None)
    unknown = Ending.MEMORY if known is None and _is_out_of_memory(error) else Ending.ERROR
    return Failed(
        number=number,
        ending=unknown if known is None else _ENDINGS[known],
        message=_text(error) or f"{type(error).__name__} without a message",
        exception_type=known.__name__ if known else _qualified_name(type(error)),
        traceback=_stack(error),
        arguments=[error.tool, error.install] if isinstance(error, MissingToolError) else [],
        exit_code=None,
        peak_memory_mb=_peak_memory_mb(),
    )


def _is_out_of_memory(error: BaseException) -> bool:
    """Returns whether an exception, or one that it was raised from, says that memory ran out."""
    link: BaseException | None = error
    seen: list[BaseException] = []
    while link is not None and not any(link is other for other in seen):
        if isinstance(link, MemoryError) or any(phrase in _text(link) for phrase in _OUT_OF_MEMORY):
            return True
        seen.append(link)
        link = link.__cause__ or (None if link.__suppress_context__ else link.__context__)
    return False


def _text(value: object) -> str:
    """Returns `str(value)`, bounded and encodable, whatever a foreign `__str__` does."""
    try:
        text = str(value)
    except Exception as error:  # noqa: BLE001 - a foreign __str__ may raise anything
        text = f"<{type(value).__name__} whose text cannot be read: {type(error).__name__}>"
    return text[:_TEXT_LIMIT].encode(errors="backslashreplace").decode()


def _stack(error: BaseException) -> str:
    try:
        # The first entry is this module's own call.
        frames = error.__traceback__.tb_next if error.__traceback__ else None
        text = "".join(traceback.format_exception(type(error), error, frames))
    except Exception as second:  # noqa: BLE001 - formatting runs foreign code
        text = f"the traceback cannot be formatted: {type(second).__name__}"
    return text[-_TEXT_LIMIT:].encode(errors="backslashreplace").decode()


def _qualified_name(kind: type) -> str:
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def _limit_reserved_memory(memory_mb: int | None) -> None:
    """Bounds private writable memory, so that one giant allocation fails instead of being granted.

    Not RLIMIT_AS: frameworks map files and reserve address space that they never touch.
    """
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    soft = hard
    if memory_mb is not None:
        wanted = (memory_mb + _RESERVE_SLACK_MB) * 1024 * 1024
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def _reset_peak_memory() -> None:
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def _peak_memory_mb() -> float | None:
    """Returns the largest resident size of this process since the last reset, where the system tells (Linux)."""
    with suppress(OSError, ValueError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    return None


def _prepare(traces: int) -> None:
    """Sets what must hold before foreign code runs."""
    faulthandler.enable(file=traces, all_threads=True)
    faulthandler.register(signal.SIGUSR1, file=traces, all_threads=True)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with suppress(OSError):
        # If the whole machine runs out, this process is to go, not the user's.
        Path("/proc/self/oom_score_adj").write_text("1000")


def main(arguments: list[str]) -> None:
    """Serves on the inherited descriptors; returns never, the parent ends the process."""
    requests, replies, traces = (int(argument) for argument in arguments)
    for descriptor in (requests, replies, traces):
        os.set_inheritable(descriptor, False)
    _prepare(traces)
    Service(Connection(requests, writable=False), Connection(replies, readable=False)).run()


if __name__ == "__main__":
    main(sys.argv[1:])
