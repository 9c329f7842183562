"""Parses a model file that may be anything."""

from __future__ import annotations

from pathlib import Path

import onnx
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]  # it ships no types

from trueport.core.errors import UsageError

_MOST_BYTES = 2**31 - 1
_SIGNATURES = (
    (b"\x89PNG", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"PK\x03\x04", "a zip archive (a .pt2, .pt, .npz or .keras file is one)"),
    (b"\x1f\x8b", "a gzip archive; unpack it first"),
    (b"\x89HDF", "an HDF5 file"),
    (b"%PDF", "a PDF document"),
    (b"\x7fELF", "a program or library"),
    (b"version https://git-lfs", "a pointer of Git LFS; fetch the file itself with `git lfs pull`"),
)


def parse_model(path: Path) -> onnx.ModelProto:
    """Returns the model in a file, with external data left where it is.

    Raises:
        UsageError: the file is empty, truncated or of another format.
    """
    size = path.stat().st_size
    if size == 0:
        raise UsageError(f"expected an ONNX model in '{path}', got an empty file")
    if size > _MOST_BYTES:
        raise UsageError(
            f"'{path}' has {size} bytes, and a protobuf message has at most {_MOST_BYTES}; "
            "save the model with its weights as external data"
        )
    content = path.read_bytes()
    try:
        model = onnx.ModelProto.FromString(content)
    except (DecodeError, ValueError) as error:
        raise _unreadable(path, content, "no complete protobuf message") from error
    if not model.HasField("graph") or not model.ir_version:
        raise _unreadable(path, content, "a message without graph or IR version")
    return model


def _unreadable(path: Path, content: bytes, what: str) -> UsageError:
    kind = _kind(content)
    if kind is not None:
        return UsageError(f"expected an ONNX model in '{path}', got {kind}")
    return UsageError(
        f"expected an ONNX model in '{path}', got {what}: its {len(content)} bytes are truncated, damaged, of another "
        "format or nested too deeply; save the model again, or copy the file once more"
    )


def _kind(content: bytes) -> str | None:
    for signature, kind in _SIGNATURES:
        if content.startswith(signature):
            return kind
    if content[:1] == b"\x80" and content[1:2] in (b"\x02", b"\x03", b"\x04", b"\x05") and content[-1:] == b".":
        return "a Python pickle, which is not opened"
    head = content[:4096]
    try:
        text = head.decode("utf-8")
    except UnicodeDecodeError:
        return None
    printable = all(c.isprintable() or c in "\r\n\t" for c in text)
    return "a text file" if printable else None
