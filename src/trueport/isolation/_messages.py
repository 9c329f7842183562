"""What parent and worker say to each other: length-prefixed MessagePack, never pickle.

MessagePack rather than JSON because JSON has no NaN and no infinity: a score of infinity would silently arrive as null.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from trueport.isolation._outcome import Ending

# A worker runs untrusted code that could write anything to the pipe; nothing we send is near this size.
MAX_REPLY_BYTES = 256 * 1024 * 1024
_TARGET = re.compile(r"([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*):([A-Za-z_]\w*)")


class Hello(msgspec.Struct, frozen=True, tag="hello"):
    """Sent once to a new worker: where to import from and which targets beyond `trueport.` it may run."""

    sys_path: list[str]
    allow: list[str]


class Request(msgspec.Struct, frozen=True, tag="request"):
    """One call. A binary message with the blob follows when `has_blob`."""

    number: int
    target: str
    payload: dict[str, Any]
    has_blob: bool
    memory_mb: int | None
    preload: list[str] | None = None
    """Perform it in a fork of the worker, made after these modules are imported; None: in the worker itself."""


class Event(msgspec.Struct, frozen=True, tag="event"):
    """Progress that the target emitted."""

    number: int
    value: dict[str, Any]


class Done(msgspec.Struct, frozen=True, tag="done"):
    """The target returned."""

    number: int
    value: dict[str, Any]
    peak_memory_mb: float | None


class Failed(msgspec.Struct, frozen=True, tag="failed"):
    """An exception left the target."""

    number: int
    ending: Ending
    message: str
    exception_type: str
    traceback: str
    arguments: list[str]
    exit_code: int | None
    peak_memory_mb: float | None


ToWorker = Hello | Request
ToParent = Event | Done | Failed

encode = msgspec.msgpack.Encoder().encode
decode_to_worker = msgspec.msgpack.Decoder(ToWorker).decode
decode_to_parent = msgspec.msgpack.Decoder(ToParent).decode


def is_allowed(target: str, allow: Sequence[str] = ()) -> bool:
    """Returns whether a target is `module:function` and lies under `trueport.` or one of the further prefixes."""
    match = _TARGET.fullmatch(target)
    return match is not None and f"{match[1]}.".startswith(("trueport.", *(f"{prefix}." for prefix in allow)))
