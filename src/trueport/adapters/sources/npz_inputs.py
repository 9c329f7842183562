"""Tensors out of an `.npz`."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from trueport.adapters.sources.npz_arrays import numpy_arrays_from_npz
from trueport.adapters.sources.wording import described
from trueport.core.errors import UsageError


def arrays_from_npz(text: str) -> dict[str, torch.Tensor]:
    """Returns the arrays of the file by name as tensors of the same dtype.

    Raises:
        UsageError: the file cannot be read, is empty, or holds objects, texts or unknown dtypes.
    """
    return {name: _tensor(array, name, text) for name, array in numpy_arrays_from_npz(text).items()}


def _tensor(array: NDArray[Any], name: str, where: str) -> torch.Tensor:
    try:
        # A copy: torch must not share memory with an array that numpy may hold read-only.
        return torch.from_numpy(np.array(array, order="C"))
    except TypeError as error:
        raise UsageError(f"torch has no dtype for array '{name}' of '{where}', {described(array)}") from error
