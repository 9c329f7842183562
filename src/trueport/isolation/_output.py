"""Keeps the end of what a worker prints; the rest costs a read and is forgotten."""

from __future__ import annotations

import os
import selectors
import sys
import threading
from contextlib import suppress

TAIL_BYTES = 64 * 1024
_CHUNK_BYTES = 256 * 1024
# What a model prints must not move the cursor of, or send commands to, the user's terminal.
_VISIBLE = bytes(b if b in b"\t\n\r" or 32 <= b != 127 else ord("?") for b in range(256))


class Tail:
    """The last bytes of one stream and how many came before them."""

    def __init__(self, limit_bytes: int = TAIL_BYTES) -> None:
        self._limit_bytes = limit_bytes
        self._kept = bytearray()
        self._dropped_bytes = 0

    def add(self, data: bytes) -> None:
        """Appends data and forgets what is over the limit."""
        self._kept += data
        excess = len(self._kept) - self._limit_bytes
        if excess > 0:
            del self._kept[:excess]
            self._dropped_bytes += excess

    def take(self) -> str:
        """Returns the text since the last call, saying how much of its beginning is left out, and starts afresh."""
        text = self._kept.decode(errors="backslashreplace")
        if self._dropped_bytes:
            text = f"[{self._dropped_bytes:,} bytes left out]\n{text}"
        self._kept.clear()
        self._dropped_bytes = 0
        return text


class OutputDrain:
    """Reads a worker's standard output and error in a thread, so that it never blocks on a full pipe."""

    def __init__(self, stdout: int, stderr: int, *, echo: bool) -> None:
        self._tails = {stdout: Tail(), stderr: Tail()}
        self._open = [stdout, stderr]
        self._echo = echo
        self._lock = threading.Lock()
        for descriptor in self._open:
            os.set_blocking(descriptor, False)
        self._thread = threading.Thread(target=self._run, name="trueport-output", daemon=True)
        self._thread.start()

    def take(self) -> tuple[str, str]:
        """Returns the tails of standard output and error since the last call, complete up to this moment."""
        with self._lock:
            for descriptor in tuple(self._open):
                self._read_available(descriptor)
            stdout, stderr = (tail.take() for tail in self._tails.values())
            return stdout, stderr

    def join(self, timeout_s: float) -> None:
        """Waits until both streams have ended."""
        self._thread.join(timeout_s)

    def _run(self) -> None:
        with selectors.DefaultSelector() as selector:
            for descriptor in self._open:
                selector.register(descriptor, selectors.EVENT_READ)
            while selector.get_map():
                for key, _ in selector.select():
                    with self._lock:
                        ended = key.fd not in self._open or not self._read_available(key.fd, once=True)
                    if ended:
                        selector.unregister(key.fd)

    def _read_available(self, descriptor: int, *, once: bool = False) -> bool:
        """Reads what is there; returns False when the stream has ended. The lock is held."""
        budget = 1 if once else 64
        while budget:
            budget -= 1
            try:
                data = os.read(descriptor, _CHUNK_BYTES)
            except BlockingIOError:
                return True
            except OSError:
                data = b""
            if not data:
                self._open.remove(descriptor)
                return False
            self._tails[descriptor].add(data)
            if self._echo:
                self._forward(data)
        return True

    def _forward(self, data: bytes) -> None:
        with suppress(OSError, ValueError):
            sys.stderr.write(data.translate(_VISIBLE).decode(errors="replace"))
            sys.stderr.flush()
