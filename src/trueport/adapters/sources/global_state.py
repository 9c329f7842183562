"""Keeps the process as it was while foreign code builds a model: random generators and torch's defaults."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch


@contextmanager
def preserved_global_state(seed: int | None = None) -> Iterator[None]:
    """Restores the global random generators, and torch's default dtype, device, threads and grad mode.

    Args:
        seed: seeds these generators inside the block, so that code which draws from them gives equal values
            in every process; None leaves them.
    """
    python_state, numpy_state = random.getstate(), np.random.get_state()
    dtype, device, grad = torch.get_default_dtype(), torch.get_default_device(), torch.is_grad_enabled()
    threads = torch.get_num_threads()
    try:
        with torch.random.fork_rng(devices=[]):
            if seed is not None:
                random.seed(seed)
                np.random.seed(seed % 2**32)
                torch.manual_seed(seed)
            yield
    finally:
        random.setstate(python_state)
        np.random.set_state(numpy_state)
        torch.set_default_dtype(dtype)
        if torch.get_default_device() != device:
            torch.set_default_device(None if device.type == "cpu" else device)
        torch.set_grad_enabled(grad)
        if torch.get_num_threads() != threads:
            torch.set_num_threads(threads)
