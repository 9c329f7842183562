"""Finds the file that the user named."""

from __future__ import annotations

from pathlib import Path

from trueport.adapters.sources.wording import did_you_mean
from trueport.core.errors import UsageError


def existing_file(text: str) -> Path:
    """Returns the path of a file that exists.

    Raises:
        UsageError: there is no such file, or it is a folder; near names in the same folder are named.
    """
    path = Path(text).expanduser()
    if path.is_file():
        return path
    if path.is_dir():
        raise UsageError(f"expected a file, got the folder '{path}'")
    if not path.parent.is_dir():
        raise UsageError(f"file '{path}' does not exist, nor does its folder; paths are relative to '{Path.cwd()}'")
    neighbours = (entry.name for entry in path.parent.iterdir() if entry.is_file())
    raise UsageError(f"file '{path}' does not exist{did_you_mean(path.name, neighbours)}")
