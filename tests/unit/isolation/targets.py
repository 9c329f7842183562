"""Targets that misbehave in every way that a model, a converter or a runtime can."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from trueport.core.errors import MissingToolError, SourceError, UsageError


def echo(payload, blob, emit):
    return {"payload": payload, "blob": len(blob) if blob is not None else None, "pid": os.getpid()}


def events(payload, blob, emit):
    for number in range(payload["count"]):
        emit({"number": number})
    return {}


def events_from_threads(payload, blob, emit):
    threads = [threading.Thread(target=events, args=(payload, None, emit)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return {}


def not_a_dict(payload, blob, emit):
    return 3


def not_encodable(payload, blob, emit):
    return {"value": object()}


def segfault(payload, blob, emit):
    emit({"event": "stage", "stage": "node-conversion"})
    sys.stderr.write("before the end\n")
    ctypes.string_at(0)
    return {}


def abort(payload, blob, emit):
    os.abort()


def leave(payload, blob, emit):
    os._exit(payload["code"])


def sys_exit(payload, blob, emit):
    sys.exit(payload["code"])


def sleep(payload, blob, emit):
    emit({"event": "phase", "name": "sleeping"})
    if payload.get("ignore"):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1):
            signal.signal(number, signal.SIG_IGN)
    time.sleep(600)
    return {}


def spin(payload, blob, emit):
    while True:
        pass


def hold_the_lock(payload, blob, emit):
    """Native code that keeps the interpreter lock: no thread of this process can run."""
    emit({"pid": os.getpid()})
    ctypes.PyDLL(None).sleep(600)
    return {}


def stop(payload, blob, emit):
    os.kill(os.getpid(), signal.SIGSTOP)
    return {}


def grow(payload, blob, emit):
    kept = []
    while True:
        kept.append(bytearray(b"x") * (8 << 20))


def one_giant_bytearray(payload, blob, emit):
    return {"size": len(bytearray(100 << 30))}


def one_giant_array(payload, blob, emit):
    import numpy as np

    return {"size": np.ones(100 << 27).size}


def one_giant_tensor(payload, blob, emit):
    import torch

    try:
        return {"size": torch.ones(100 << 27).numel()}
    except RuntimeError as error:
        raise ValueError("as exporters wrap it") from error


def child_grows(payload, blob, emit):
    code = "kept = []\nwhile True: kept.append(bytearray(b'x') * (8 << 20))"
    subprocess.run([sys.executable, "-c", code], start_new_session=True)
    return {}


def print_much(payload, blob, emit):
    line = "y" * 1023 + "\n"
    for _ in range(payload["mb"] * 1024):
        sys.stdout.write(line)
    sys.stdout.write("the last line\n")
    sys.stderr.write("\x1b[31mred\n")
    return {}


def raise_(payload, blob, emit):
    wrapped = ValueError("as exporters wrap it")
    wrapped.__cause__ = RuntimeError(
        "DefaultCPUAllocator: can't allocate memory: you tried to allocate 107374182400 bytes"
    )
    error = {
        "value": ValueError("a \ud800 surrogate"),
        "usage": UsageError("expected a module, got an int"),
        "source": SourceError("the source fails"),
        "missing": MissingToolError("openvino", "pip install openvino"),
        "interrupt": KeyboardInterrupt(),
        "memory": MemoryError(),
        "hostile": HostileError(),
        "allocator": wrapped,
    }[payload["what"]]
    raise error


class HostileError(Exception):
    def __str__(self):
        raise RuntimeError("no text for you")


class DerivedUsageError(UsageError):
    pass


def raise_derived(payload, blob, emit):
    raise DerivedUsageError("from a module of its own")


def leave_processes_behind(payload, blob, emit):
    """A child, a grandchild in a session of its own, and a forked daemon whose parent has gone."""
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    code = "import subprocess, sys; subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])"
    subprocess.run([sys.executable, "-c", code], start_new_session=True)
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(600)
        os._exit(0)
    Path(tempfile.mkdtemp(), "left").write_bytes(b"x" * 1000)
    if payload.get("then") == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    return {"folder": tempfile.gettempdir()}


def fork_returns(payload, blob, emit):
    """A fork that comes back into the worker's own code and must not answer in its place."""
    if os.fork() == 0:
        return {"who": "the fork"}
    time.sleep(0.3)
    return {"who": "the original"}


def locked_folder(payload, blob, emit):
    folder = Path(tempfile.mkdtemp())
    (folder / "file").write_text("x")
    folder.chmod(0o500)
    return {"folder": str(folder)}


def close_descriptors(payload, blob, emit):
    os.closerange(3, 1024)
    return {}


def write_rubbish(payload, blob, emit):
    for descriptor in range(3, 64):
        try:
            os.write(descriptor, b"\x00\x00\x00\x05hello" * 10)
        except OSError:
            continue
    return {}


def talk_later(payload, blob, emit):
    def later():
        while True:
            time.sleep(0.01)
            emit({"from": "an earlier request"})

    threading.Thread(target=later, daemon=True).start()
    return {}


def environment(payload, blob, emit):
    return {"value": os.environ.get(payload["name"]), "path": sys.path, "cwd": str(Path.cwd())}


def load(payload, blob, emit):
    import pickle

    return {"value": pickle.loads(blob)()}


def peak(payload, blob, emit):
    touched = bytearray(b"x") * (payload["mb"] << 20)
    return {"size": len(touched)}


_MET: list[str] = []


def remember(payload, blob, emit):
    before = len(_MET)
    _MET.append(payload["module"])
    return {"imported": payload["module"] in sys.modules, "before": before}
