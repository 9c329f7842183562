"""The parent's side: a worker that is started when needed, watched while it works and replaced when it ended."""

from __future__ import annotations

import queue
import signal
import sys
import threading
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Any

import msgspec

from trueport.core.errors import ToolError
from trueport.isolation._memory import MIB
from trueport.isolation._messages import Done, Event, Failed, Request, is_allowed
from trueport.isolation._outcome import Ending, Outcome
from trueport.isolation._process import WorkerProcess

POLL_S = 0.02
_LAST_WORDS_S = 0.5
_STACKS_S = 1.0
# These leave the interpreter sound: the next request may run in it. After a failed allocation it may not be.
_REUSABLE = frozenset(
    {Ending.RESULT, Ending.USAGE_ERROR, Ending.TOOL_ERROR, Ending.MISSING_TOOL, Ending.STORE_ERROR, Ending.ERROR}
)

OnEvent = Callable[[dict[str, Any]], None]


class Worker:
    """A spawned interpreter that runs requests one at a time.

    It starts with the first request (or `start`), stays warm between requests, and is replaced before the next one
    after an ending that took it down. Leaving the context kills it with everything that it started.

    Args:
        python: the interpreter; another one must have trueport installed.
        env: variables to set on top of this process's environment.
        echo: forward what the worker prints to standard error, control characters replaced.
        allow: module prefixes beyond `trueport` that targets may come from. For tests, whose targets misbehave on
            purpose and are no part of the package.
    """

    def __init__(
        self,
        *,
        python: str = sys.executable,
        env: Mapping[str, str] | None = None,
        echo: bool = False,
        allow: tuple[str, ...] = (),
    ) -> None:
        self._python = python
        self._env = dict(env or {})
        self._echo = echo
        self._allow = allow
        self._process: WorkerProcess | None = None
        self._end: Callable[[], object] = lambda: None
        self._number = 0
        self._closed = False
        self._lock = threading.Lock()

    @property
    def pid(self) -> int | None:
        """Returns the process id of the running worker, or None."""
        return self._process.pid if self._process is not None else None

    def __enter__(self) -> Worker:
        """Returns the worker itself; nothing is started yet."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Ends the worker."""
        self.close()

    def start(self) -> None:
        """Starts the interpreter without waiting for it, so that it loads while the caller does something else."""
        if self._closed:
            raise RuntimeError("this worker was closed")
        if self._process is not None and self._process.poll() is not None:
            self._drop()
        if self._process is None:
            try:
                self._process = WorkerProcess(self._python, self._env, self._allow, echo=self._echo)
            except OSError as error:
                raise ToolError(f"no worker can be started with the interpreter '{self._python}': {error}") from error
            # For a worker that is dropped without `close`, and for the end of the program.
            self._end = weakref.finalize(self, self._process.end)

    def close(self) -> None:
        """Kills the worker and all that it started, and removes its files."""
        self._closed = True
        self._drop()

    def run(
        self,
        target: str,
        payload: Mapping[str, Any],
        *,
        blob: bytes | None = None,
        timeout_s: float | None = None,
        memory_mb: int | None = None,
        preload: Sequence[str] | None = None,
        on_event: OnEvent | None = None,
    ) -> Outcome:
        """Returns how `module:function(payload, blob, emit) -> dict` ended in the worker.

        Args:
            target: a function under `trueport.`.
            payload: what it gets; numbers (NaN and infinity, too), strings, lists, dicts.
            blob: bytes that follow the request, such as a module by cloudpickle.
            timeout_s: wall-clock limit, which includes the start of a worker.
            memory_mb: limit for the resident size of the worker's process tree, in MiB.
            preload: perform it in a fork of the worker, which imports these modules first and is otherwise left as it
                was: every such request meets a process that has done nothing but import. Modules that need a thread
                which they start when they are imported do not belong here.
            on_event: called in this thread with each event that the target emits, in order.

        Raises:
            ValueError: the target is not allowed.
            ToolError: no worker can be started. Nothing that happens in a worker raises.
        """
        if not is_allowed(target, self._allow):
            raise ValueError(f"expected a target 'module:function' under trueport., got '{target}'")
        with self._lock:
            self._number += 1
            apart = None if preload is None else list(preload)
            request = Request(self._number, target, dict(payload), blob is not None, memory_mb, apart)
            outcome = self._attempt(request, blob, timeout_s, on_event)
            if self._closed:
                raise RuntimeError("this worker was closed while it ran")
            if outcome.kind not in _REUSABLE:
                self._drop()
            return outcome

    def _attempt(
        self, request: Request, blob: bytes | None, timeout_s: float | None, on_event: OnEvent | None
    ) -> Outcome:
        started = time.monotonic()
        try:
            self.start()
            assert self._process is not None
            return _Attempt(self._process, request, timeout_s, on_event, started).run(blob)
        except BaseException:
            # Ctrl-C, or an error of `on_event`: what still runs there has nobody left to report to.
            self._drop()
            raise

    def _drop(self) -> None:
        if self._process is not None:
            self._process = None
            self._end()


@dataclass
class _Attempt:
    """One request to one process, from sending to its outcome."""

    process: WorkerProcess
    request: Request
    timeout_s: float | None
    on_event: OnEvent | None
    started: float
    peak_bytes: int = 0
    next_sample: float = 0.0
    events: list[dict[str, Any]] = field(default_factory=list)

    def run(self, blob: bytes | None) -> Outcome:
        self.process.output.take()
        self.process.traces()
        self.process.send(self.request, blob)
        outcome = self._wait()
        stdout, stderr = self.process.output.take()
        peaks = [self.peak_bytes / MIB or None, outcome.peak_memory_mb]
        return replace(
            outcome,
            events=tuple(self.events),
            peak_memory_mb=max((peak for peak in peaks if peak is not None), default=None),
            elapsed_s=time.monotonic() - self.started,
            stdout_tail=stdout,
            stderr_tail=stderr,
        )

    def _wait(self) -> Outcome:
        while True:
            try:
                message = self.process.inbox.get(timeout=POLL_S)
            except queue.Empty:
                if self.process.poll() is not None:
                    # A process that outlived the worker may hold the pipe open, so there may be no end of file.
                    return self._last_words()
            else:
                outcome = self._last_words() if message is None else self._take(message)
                if outcome is not None:
                    return outcome
            outcome = self._limit_reached()
            if outcome is not None:
                return outcome

    def _take(self, message: object) -> Outcome | None:
        """Returns the outcome that a message is, or None for an event."""
        if isinstance(message, msgspec.DecodeError):
            return Outcome(Ending.EXITED, message=f"the worker's answer cannot be read: {message}")
        assert isinstance(message, Event | Done | Failed)
        if message.number != self.request.number:
            # A thread that an earlier request left behind still talks.
            return None
        if isinstance(message, Event):
            self.events.append(message.value)
            if self.on_event is not None:
                self.on_event(message.value)
            return None
        if isinstance(message, Done):
            return Outcome(Ending.RESULT, value=message.value, peak_memory_mb=message.peak_memory_mb)
        return Outcome(
            message.ending,
            message=message.message,
            exception_type=message.exception_type,
            traceback=message.traceback,
            arguments=tuple(message.arguments),
            exit_code=message.exit_code,
            peak_memory_mb=message.peak_memory_mb,
        )

    def _last_words(self) -> Outcome:
        """Returns the outcome of a process that is gone or can say no more."""
        deadline = time.monotonic() + _LAST_WORDS_S
        while (remaining := deadline - time.monotonic()) > 0:
            try:
                message = self.process.inbox.get(timeout=min(remaining, POLL_S))
            except queue.Empty:
                if self.process.poll() is not None:
                    break
                continue
            outcome = None if message is None else self._take(message)
            if outcome is not None:
                return outcome
        return self._status()

    def _status(self) -> Outcome:
        status = self.process.poll()
        if status is None:
            return Outcome(Ending.EXITED, message="the worker closed its connection without an answer and was ended")
        if status >= 0:
            return Outcome(Ending.EXITED, message=f"the process left with exit code {status}", exit_code=status)
        name = _signal_name(-status)
        hint = " (not sent by trueport; the system does this when memory runs out)" if name == "SIGKILL" else ""
        message = f"the process was ended by {name}{hint}"
        return Outcome(Ending.SIGNAL, message=message, signal=name, traceback=self.process.traces())

    def _limit_reached(self) -> Outcome | None:
        now = time.monotonic()
        if self.timeout_s is not None and now - self.started > self.timeout_s:
            return Outcome(Ending.TIMEOUT, message=f"no result within {self.timeout_s:g} s", traceback=self._stacks())
        if now < self.next_sample:
            return None
        self.next_sample = now + POLL_S
        size = self.process.memory.sample_bytes()
        self.peak_bytes = max(self.peak_bytes, size)
        limit_mb = self.request.memory_mb
        if limit_mb is None or size <= limit_mb * MIB:
            return None
        message = f"the worker's processes held {size / MIB:,.1f} MiB, allowed are {limit_mb:,} MiB"
        return Outcome(Ending.MEMORY, message=message)

    def _stacks(self) -> str:
        """Returns where the worker is; empty where it cannot tell in a moment."""
        self.process.dump_stacks()
        deadline = time.monotonic() + _STACKS_S
        text = ""
        while time.monotonic() < deadline:
            time.sleep(POLL_S)
            more = self.process.traces()
            if text and not more:
                # The stacks come in many small writes; a pause means that they are complete.
                break
            text += more
        return text


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
