"""Arrays out of an `.npz`, which is a zip archive of arrays; pickled objects in it are never opened."""

from __future__ import annotations

import zipfile
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueport.adapters.sources.files import existing_file
from trueport.adapters.sources.wording import described, listed
from trueport.core.errors import UsageError

KINDS = "booleans, integers, or real or complex floating point"


def numpy_arrays_from_npz(text: str, *, allowed: str = "biufc") -> dict[str, NDArray[Any]]:
    """Returns the arrays of the file by name, in the byte order of this machine.

    Args:
        text: the path.
        allowed: kinds of NumPy types that may be in it; others are refused.

    Raises:
        UsageError: the file cannot be read, is empty, or holds objects or other kinds.
    """
    path = existing_file(text)
    try:
        # Opened here because numpy leaves the file open when the archive is damaged.
        with path.open("rb") as file:
            archive = np.load(file, allow_pickle=False)
            if not isinstance(archive, np.lib.npyio.NpzFile):
                raise ValueError("it holds a single array without a name")
            arrays = {name: _array(archive, name, str(path), allowed) for name in archive.files}
    except (OSError, zipfile.BadZipFile, ValueError, EOFError) as error:
        raise UsageError(f"expected '{path}' to be an archive written by numpy.savez; it cannot be used: {error}"
                         ) from error  # fmt: skip
    if not arrays:
        raise UsageError(f"'{path}' holds no arrays; write one with numpy.savez('{path.name}', x=array)")
    return arrays


def _array(archive: np.lib.npyio.NpzFile, name: str, where: str, allowed: str) -> NDArray[Any]:
    try:
        array = archive[name]
    except ValueError as error:
        if "allow_pickle" not in str(error):
            raise
        raise UsageError(
            f"array '{name}' of '{where}' holds Python objects, which are not unpickled because that can run code; "
            f"store plain arrays ({KINDS}); the archive holds: {listed(archive.files)}"
        ) from error
    native = array.astype(array.dtype.newbyteorder("="), copy=False)
    if native.dtype.kind not in allowed:
        raise UsageError(f"expected array '{name}' of '{where}' to hold {KINDS}; got {described(array)}")
    return np.asarray(native)
