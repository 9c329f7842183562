"""Puts a module back as it was: running statistics, caches, counters and the random state survive no run."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import FunctionType, ModuleType
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

_TABLES = ("_parameters", "_buffers", "_modules")
_PARAMETER_LIMIT_BYTES = 256 * 2**20
"""Above this, parameters are not copied; a forward that writes parameters of such a model is caught by version."""


_ATOMIC = (str, bytes, int, float, complex, type, FunctionType, ModuleType, torch.dtype, torch.device, nn.Module)


@contextmanager
def preserved(module: nn.Module) -> Iterator[None]:
    """Restores buffers, parameters, plain attributes and torch's random state when the block ends.

    What changes is put back in place, so that objects that modules share stay shared.
    """
    saved = [(m, _plain(m), dict(m._parameters), dict(m._buffers)) for m in module.modules()]
    tensors = [*module.buffers(), *_small_parameters(module)]
    skip = {id(t) for t in [*module.parameters(), *module.buffers()]}
    undo = [_keeper(t) for t in {id(t): t for t in tensors}.values()]
    undo += _reachable((value for _, plain, _, _ in saved for value in plain.values()), skip)
    with torch.random.fork_rng(devices=[]):
        try:
            yield
        finally:
            for owner, plain, parameters, buffers in saved:
                for name in set(owner.__dict__) - set(plain) - set(_TABLES):
                    del owner.__dict__[name]
                owner.__dict__.update(plain)
                _refill(owner._parameters, parameters)
                _refill(owner._buffers, buffers)
            with torch.no_grad():
                for put_back in undo:
                    put_back()


def _plain(module: nn.Module) -> dict[str, Any]:
    return {name: value for name, value in module.__dict__.items() if name not in _TABLES}


def _refill(table: dict[Any, Any], kept: dict[Any, Any]) -> None:
    table.clear()
    table.update(kept)


def _small_parameters(module: nn.Module) -> list[Tensor]:
    parameters = list(module.parameters())
    size_bytes = sum(p.numel() * p.element_size() for p in parameters)
    return parameters if size_bytes <= _PARAMETER_LIMIT_BYTES else []


def _keeper(tensor: Tensor) -> Callable[[], None]:
    """Returns what puts a tensor's values back; the version alone does not tell, batch normalization leaves it."""
    version = tensor._version
    copied = tensor.detach().clone() if tensor.layout is torch.strided else None

    def put_back() -> None:
        if copied is None or (tensor._version == version and isinstance(tensor, nn.Parameter)):
            return
        if tensor._version != version or not torch.equal(tensor, copied):
            tensor.copy_(copied)

    return put_back


def _reachable(values: Iterable[Any], seen: set[int]) -> list[Callable[[], None]]:
    """Returns what puts back the contents of all containers, tensors and plain objects behind these values."""
    undo: list[Callable[[], None]] = []
    alive: list[Any] = []
    waiting = list(values)
    while waiting:
        value = waiting.pop()
        if value is None or isinstance(value, _ATOMIC) or id(value) in seen:
            continue
        seen.add(id(value))
        alive.append(value)
        put_back, inner = _contents(value)
        if put_back is not None:
            undo.append(put_back)
        waiting += inner
    return undo


def _contents(value: Any) -> tuple[Callable[[], None] | None, list[Any]]:
    """Returns what puts the contents of one value back, and what is in it."""
    if isinstance(value, Tensor):
        return _keeper(value), []
    if isinstance(value, torch.Generator):
        state = value.get_state()
        return (lambda: _ignore(value.set_state(state))), []
    if isinstance(value, np.ndarray):
        copied = value.copy()
        return (lambda: np.copyto(value, copied)), []
    if isinstance(value, dict):
        table = dict(value)
        return (lambda: _refill(value, table)), list(table.values())
    if isinstance(value, list | deque | set):
        items = list(value)
        add = value.update if isinstance(value, set) else value.extend
        return (lambda: _ignore(value.clear(), add(items))), items
    if isinstance(value, tuple | frozenset):
        return None, list(value)
    return _of_object(value)


def _of_object(value: Any) -> tuple[Callable[[], None] | None, list[Any]]:
    """An object with plain attributes, such as a cache; those of frameworks themselves are left alone."""
    table = getattr(value, "__dict__", None)
    if not isinstance(table, dict) or type(value).__module__.split(".")[0] == "torch":
        return None, []
    kept = dict(table)
    return (lambda: _refill(table, kept)), list(kept.values())


def _ignore(*_: Any) -> None:
    """Takes results that nobody needs."""
