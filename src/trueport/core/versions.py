"""Versions of installed packages, for records."""

from __future__ import annotations

import platform
from functools import cache
from importlib import metadata


def package_versions(*names: str) -> dict[str, str]:
    """Returns the installed version of each package; one that is not installed is left out."""
    found = {}
    for name in names:
        try:
            found[name] = _version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def base_versions() -> dict[str, str]:
    """Returns the versions of trueport, Python and NumPy."""
    return {"trueport": _version("trueport"), "python": platform.python_version(), **package_versions("numpy")}


@cache
def _version(name: str) -> str:
    """Reading a package's metadata takes milliseconds, and a warm process is asked for it with every check."""
    return metadata.version(name)
