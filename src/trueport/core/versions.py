"""Versions of installed packages, for records."""

from __future__ import annotations

import platform
from importlib import metadata


def package_versions(*names: str) -> dict[str, str]:
    """Returns the installed version of each package; one that is not installed is left out."""
    found = {}
    for name in names:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def base_versions() -> dict[str, str]:
    """Returns the versions of trueport, Python and NumPy."""
    return {"trueport": metadata.version("trueport"), "python": platform.python_version(), **package_versions("numpy")}
