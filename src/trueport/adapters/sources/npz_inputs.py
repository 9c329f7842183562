"""Arrays out of an `.npz`, which is a zip archive of arrays; pickled objects in it are never opened."""

from __future__ import annotations

import zipfile

import numpy as np
import torch

from trueport.adapters.sources.files import existing_file
from trueport.adapters.sources.wording import described, listed
from trueport.core.errors import UsageError

_KINDS = "booleans, integers, or real or complex floating point"


def arrays_from_npz(text: str) -> dict[str, torch.Tensor]:
    """Returns the arrays of the file by name as tensors of the same dtype.

    Raises:
        UsageError: the file cannot be read, is empty, or holds objects, texts or unknown dtypes.
    """
    path = existing_file(text)
    try:
        # Opened here because numpy leaves the file open when the archive is damaged.
        with path.open("rb") as file:
            archive = np.load(file, allow_pickle=False)
            if not isinstance(archive, np.lib.npyio.NpzFile):
                raise ValueError("it holds a single array without a name")
            tensors = {name: _tensor(archive, name, str(path)) for name in archive.files}
    except (OSError, zipfile.BadZipFile, ValueError, EOFError) as error:
        raise UsageError(f"expected '{path}' to be an archive written by numpy.savez; it cannot be used: {error}"
                         ) from error  # fmt: skip
    if not tensors:
        raise UsageError(f"'{path}' holds no arrays; write one with numpy.savez('{path.name}', x=array)")
    return tensors


def _tensor(archive: np.lib.npyio.NpzFile, name: str, where: str) -> torch.Tensor:
    try:
        array = archive[name]
    except ValueError as error:
        if "allow_pickle" not in str(error):
            raise
        raise UsageError(
            f"array '{name}' of '{where}' holds Python objects, which are not unpickled because that can run code; "
            f"store plain arrays ({_KINDS}); the archive holds: {listed(archive.files)}"
        ) from error
    native = array.astype(array.dtype.newbyteorder("="), copy=False)
    if native.dtype.kind not in "biufc":
        raise UsageError(f"expected array '{name}' of '{where}' to hold {_KINDS}; got {described(array)}")
    try:
        # A copy: torch must not share memory with an array that numpy may hold read-only.
        return torch.from_numpy(np.array(native, order="C"))
    except TypeError as error:
        raise UsageError(f"torch has no dtype for array '{name}' of '{where}', {described(array)}") from error
