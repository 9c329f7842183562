"""What the configuration of a Keras file holds besides Keras's own classes, and whether the archive is sound."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trueport.core.errors import UsageError

_CONFIG = "config.json"
_MOST_CONFIG_BYTES = 2**26
_MOST_UNPACKED_BYTES, _MOST_GROWTH = 2**29, 100
"""A larger archive must not unpack to more than so many times its own size."""
_CODE = frozenset({"Lambda", "TFSMLayer", "TorchModuleWrapper", "JaxLayer", "FlaxLayer"})
_LOOKUPS = frozenset({"StringLookup", "IntegerLookup", "TextVectorization"})
_OWN_PACKAGES = frozenset({"keras", "tf_keras", "tensorflow", "builtins"})


@dataclass(frozen=True)
class Foreign:
    """What a configuration names that Keras does not run by itself.

    Attributes:
        unsafe: layers of Keras that hold code or a graph, or that read a file.
        classes: of users, with their modules.
    """

    unsafe: tuple[str, ...]
    classes: tuple[str, ...]


def require_sound_archive(path: Path, *, trusted: bool) -> None:
    """Refuses a file that is no archive as Keras writes it, leads out of itself or unpacks to far more than it is.

    Raises:
        UsageError: so it is.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise UsageError(f"expected '{path}' to be a zip archive as Keras writes it; it is none, or cut off") from error
    sizes = {member.filename: member.file_size for member in members}
    if _CONFIG not in sizes:
        raise UsageError(f"expected '{path}' to be a model saved by Keras; the archive holds no {_CONFIG}")
    outside = sorted(name for name in sizes if name.startswith("/") or ".." in name.replace("\\", "/").split("/"))
    if outside:
        raise UsageError(f"expected all members of '{path}' to lie in the archive; one is named '{outside[0]}'")
    if sizes[_CONFIG] > _MOST_CONFIG_BYTES:
        raise UsageError(
            f"expected {_CONFIG} in '{path}' to have at most {_MOST_CONFIG_BYTES:,} bytes, got {sizes[_CONFIG]:,}"
        )
    unpacked, packed = sum(member.file_size for member in members), path.stat().st_size
    if not trusted and unpacked > _MOST_UNPACKED_BYTES and unpacked > _MOST_GROWTH * packed:
        raise UsageError(
            f"expected '{path}' to unpack to at most {_MOST_GROWTH} times its size of {packed:,} bytes, got "
            f"{unpacked:,} bytes; give --trust-pickle if you trust the file"
        )


def foreign_parts(path: Path) -> Foreign:
    """Returns what the configuration of a `.keras` or `.h5` file names; nothing where it cannot be read."""
    try:
        config = json.loads(_config_text(path))
        parts = list(_parts(config))
    except (OSError, ValueError, KeyError, RecursionError, zipfile.BadZipFile):
        return Foreign((), ())
    unsafe = {_short(part) for part in parts if _is_own(part) and _is_unsafe(part)}
    classes = {f"{part.get('module') or '?'}.{_short(part)}" for part in parts if not _is_own(part)}
    return Foreign(tuple(sorted(unsafe)), tuple(sorted(classes)))


def _config_text(path: Path) -> str | bytes:
    if path.suffix.lower() == ".keras":
        with zipfile.ZipFile(path) as archive:
            return archive.read(_CONFIG)
    import h5py  # type: ignore[import-untyped]  # ships no type hints

    with h5py.File(path, "r") as file:
        text: str | bytes = file.attrs["model_config"]
        return text


def _parts(value: Any) -> Iterator[dict[str, Any]]:
    """Yields every object that a configuration describes, at any depth."""
    pending = [value]
    while pending:
        current = pending.pop()
        if isinstance(current, dict):
            if isinstance(current.get("class_name"), str):
                yield current
            pending += current.values()
        elif isinstance(current, list):
            pending += current


def _is_own(part: dict[str, Any]) -> bool:
    """Tells whether an object is of Keras's own: by its module, and by the name under which it is registered."""
    module, registered = part.get("module"), part.get("registered_name") or part["class_name"]
    if isinstance(registered, str) and ">" in registered:
        return registered.partition(">")[0].lower() == "keras"
    return module is None or (isinstance(module, str) and module.split(".")[0] in _OWN_PACKAGES)


def _is_unsafe(part: dict[str, Any]) -> bool:
    config = part.get("config")
    reads = part["class_name"] in _LOOKUPS and isinstance(config, dict) and isinstance(config.get("vocabulary"), str)
    return reads or part["class_name"] in _CODE or part["class_name"] == "__lambda__"


def _short(part: dict[str, Any]) -> str:
    name = part["config"] if part["class_name"] == "function" and "config" in part else part["class_name"]
    return "lambda" if name == "__lambda__" else str(name).rpartition(">")[2]
