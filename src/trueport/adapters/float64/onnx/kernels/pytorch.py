"""PyTorch as a library of float64 contractions, where it can be had; NumPy has no convolution.

Its number of threads is the one that the process has set. NumPy's BLAS takes all cores whatever else runs there.
"""

from __future__ import annotations

import functools
import sys
from typing import Any

import numpy as np

from trueport.adapters.float64.onnx.dtypes import Array

# Multiplications from which a product is worth the way to PyTorch and back.
_LARGE = 1 << 17


@functools.cache
def find_torch() -> Any | None:
    """Returns PyTorch, imported if need be, or None."""
    try:
        import torch
    except ImportError:
        return None
    return torch


def share(torch: Any, x: Array) -> Any:
    """Returns a tensor of the array, sharing its memory if it can."""
    shareable = x.flags.writeable and all(stride >= 0 for stride in x.strides)
    return torch.from_numpy(x if shareable else np.array(x, order="C"))


def product(a: Array, b: Array) -> Array:
    """Returns the matrix product, as `numpy.matmul` defines it."""
    # A process that has not imported PyTorch does not do so for a product.
    if a.size * b.shape[-1] >= _LARGE and a.dtype == b.dtype == np.float64 and a.ndim > 1 < b.ndim:
        torch = sys.modules.get("torch")
        if torch is not None:
            with torch.inference_mode():
                result: Array = torch.matmul(share(torch, a), share(torch, b)).numpy()
            return result
    return np.asarray(np.matmul(a, b))
