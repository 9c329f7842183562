"""Ends a worker and removes its files when the process that started it is gone, however it went.

Run as a script beside every worker, it waits for the end of its standard input, which the kernel closes with the
parent. `PR_SET_PDEATHSIG` would be shorter, but it fires when the *thread* that started the worker ends, which would
look like a crash of the model; it leaves the worker's own children and files behind; and a thread in the worker that
watches a pipe (there is one, too) cannot run while native code holds the interpreter lock. Standard library only: it
starts in about 15 ms.
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from pathlib import Path

MARK = "TRUEPORT_WORKER_MARK"
_ROUNDS = 20


def end_group(group: int) -> None:
    """Kills every process of a process group."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


def marked(mark: str) -> list[int]:
    """Returns the processes that inherited the mark in their environment (Linux; none can be found elsewhere).

    This finds what left the worker's group, session and process tree: environments survive all three.
    """
    needle = f"{MARK}={mark}".encode()
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if needle in (entry / "environ").read_bytes().split(b"\0") and int(entry.name) != os.getpid():
                found.append(int(entry.name))
    return found


def end_marked(mark: str) -> None:
    """Kills the processes that carry the mark, again and again while they fork."""
    for _ in range(_ROUNDS):
        # A zombie has no environment any more, so the loop ends although nobody reaped it.
        processes = marked(mark)
        if not processes:
            return
        for pid in processes:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)


def remove_tree(folder: str) -> None:
    """Removes a folder with everything in it, also where a model took its own write permission away."""
    import shutil

    for path, _, _ in os.walk(folder):
        with suppress(OSError):
            Path(path).chmod(0o700)
    shutil.rmtree(folder, ignore_errors=True)


def main(arguments: list[str]) -> None:
    """Waits until standard input ends, then ends the worker. Arguments: process group, mark, folder."""
    group, mark, folder = arguments
    while os.read(0, 4096):
        pass
    end_group(int(group))
    end_marked(mark)
    remove_tree(folder)


if __name__ == "__main__":
    main(sys.argv[1:])
