"""One spawned interpreter with its pipes, its private folder and its guardian."""

from __future__ import annotations

import os
import queue
import secrets
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from multiprocessing.connection import Pipe
from pathlib import Path

import msgspec

from trueport.isolation import _guardian
from trueport.isolation._memory import TreeMemory
from trueport.isolation._messages import MAX_REPLY_BYTES, Hello, Request, ToParent, decode_to_parent, encode
from trueport.isolation._output import OutputDrain

_JOIN_S = 2.0
_TRACE_BYTES = 256 * 1024


class WorkerProcess:
    """A worker from its start to its end. `end` leaves no process, no zombie of ours and no file.

    Attributes:
        inbox: what the worker said, in order; None when it can say no more.
        memory: its process tree.
        output: what it prints.
    """

    def __init__(self, python: str, env: Mapping[str, str], allow: Sequence[str], *, echo: bool) -> None:
        self._scratch = tempfile.mkdtemp(prefix="trueport-")
        self._mark = secrets.token_hex(16)
        requests, self._requests = Pipe(duplex=False)
        self._replies, replies = Pipe(duplex=False)
        self._traces, traces = os.pipe()
        os.set_blocking(self._traces, False)
        inherited = (requests.fileno(), replies.fileno(), traces)
        try:
            self._process = self._spawn(python, env, inherited)
            self._guardian = self._watch()
        except BaseException:
            _guardian.remove_tree(self._scratch)
            raise
        finally:
            requests.close()
            replies.close()
            os.close(traces)
        self.inbox: queue.SimpleQueue[ToParent | msgspec.DecodeError | None] = queue.SimpleQueue()
        self.memory = TreeMemory(self._process.pid)
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self.output = OutputDrain(self._process.stdout.fileno(), self._process.stderr.fileno(), echo=echo)
        self._reader = threading.Thread(target=self._read, name="trueport-replies", daemon=True)
        self._reader.start()
        # Only the same interpreter can use our import path; it must, or a module sent by reference is not found there.
        sys_path = [str(Path(entry).absolute()) for entry in sys.path] if python == sys.executable else []
        self._outbox: list[bytes] = [encode(Hello(sys_path, list(allow)))]

    @property
    def pid(self) -> int:
        """Returns the worker's process id, which is its process group and session, too."""
        return self._process.pid

    def poll(self) -> int | None:
        """Returns the exit status as `subprocess` gives it, or None while the worker runs."""
        return self._process.poll()

    def send(self, request: Request, blob: bytes | None) -> None:
        """Hands over a request without waiting: a worker that does not read must not block its parent."""
        messages = [*self._outbox, encode(request), *([] if blob is None else [blob])]
        self._outbox = []
        threading.Thread(target=self._write, args=(messages,), name="trueport-send", daemon=True).start()

    def dump_stacks(self) -> None:
        """Makes the worker write the Python stacks of its threads, also while native code holds its lock."""
        with suppress(ProcessLookupError, PermissionError):
            os.kill(self.pid, signal.SIGUSR1)

    def traces(self) -> str:
        """Returns the stacks that a fatal signal or `dump_stacks` has left."""
        with suppress(OSError):
            return os.read(self._traces, _TRACE_BYTES).decode(errors="backslashreplace")
        return ""

    def end(self) -> None:
        """Kills the worker and all that it started, and removes its folder. A second call does nothing."""
        if self._traces < 0:
            return
        self.memory.walk(now=True)
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        self.memory.end_descendants()
        _guardian.end_marked(self._mark)
        self._process.wait()
        self._guardian.kill()
        self._guardian.wait()
        _guardian.remove_tree(self._scratch)
        self._reader.join(_JOIN_S)
        self.output.join(_JOIN_S)
        self._close()

    def _close(self) -> None:
        for stream in (self._guardian.stdin, self._process.stdout, self._process.stderr):
            if stream is not None:
                with suppress(OSError):
                    stream.close()
        self._requests.close()
        self._replies.close()
        os.close(self._traces)
        self._traces = -1

    def _spawn(self, python: str, env: Mapping[str, str], inherited: tuple[int, ...]) -> subprocess.Popen[bytes]:
        private = dict.fromkeys(("TMPDIR", "TEMP", "TMP"), self._scratch)
        # -P: the folder in which the user happens to stand must not provide modules to the worker.
        return subprocess.Popen(  # noqa: S603 - our own interpreter and module
            [python, "-P", "-m", "trueport.isolation.worker", *map(str, inherited)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            pass_fds=inherited,
            start_new_session=True,
            env={**os.environ, **env, **private, _guardian.MARK: self._mark},
        )

    def _watch(self) -> subprocess.Popen[bytes]:
        try:
            return subprocess.Popen(  # noqa: S603 - our own interpreter and file
                [sys.executable, "-I", "-S", _guardian.__file__, str(self.pid), self._mark, self._scratch],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                bufsize=0,
                start_new_session=True,
            )
        except BaseException:
            self._process.kill()
            self._process.wait()
            raise

    def _write(self, messages: list[bytes]) -> None:
        # A worker that has gone is noticed by the one who waits for its answer.
        with suppress(OSError, ValueError):
            for message in messages:
                self._requests.send_bytes(message)

    def _read(self) -> None:
        try:
            while True:
                self.inbox.put(decode_to_parent(self._replies.recv_bytes(MAX_REPLY_BYTES)))
        except msgspec.DecodeError as error:
            self.inbox.put(error)
        except (EOFError, OSError, ValueError, TypeError):
            # The last two: the connection was closed under a read that was about to start.
            pass
        self.inbox.put(None)
