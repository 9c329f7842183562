"""Keeps the process as it was while foreign code builds a model: random generators and torch's defaults."""

from __future__ import annotations

import importlib.util
import random
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

import numpy as np


@contextmanager
def preserved_global_state(seed: int | None = None) -> Iterator[None]:
    """Restores the global random generators, and torch's default dtype, device, threads and grad mode.

    Args:
        seed: seeds these generators inside the block, so that code which draws from them gives equal values
            in every process (Keras draws its seeds from Python's own); None leaves them.
    """
    python_state, numpy_state = random.getstate(), np.random.get_state()
    try:
        with _torch_preserved(seed) if importlib.util.find_spec("torch") else nullcontext():
            if seed is not None:
                random.seed(seed)
                np.random.seed(seed % 2**32)
            yield
    finally:
        random.setstate(python_state)
        np.random.set_state(numpy_state)


@contextmanager
def _torch_preserved(seed: int | None) -> Iterator[None]:
    import torch

    dtype, device, grad = torch.get_default_dtype(), torch.get_default_device(), torch.is_grad_enabled()
    threads = torch.get_num_threads()
    try:
        with torch.random.fork_rng(devices=[]):
            if seed is not None:
                torch.manual_seed(seed)
            yield
    finally:
        torch.set_default_dtype(dtype)
        if torch.get_default_device() != device:
            torch.set_default_device(None if device.type == "cpu" else device)
        torch.set_grad_enabled(grad)
        if torch.get_num_threads() != threads:
            torch.set_num_threads(threads)
