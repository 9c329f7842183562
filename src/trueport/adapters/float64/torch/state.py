"""Puts a module back as it was: running statistics, caches, counters and the random state survive no run."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

_TABLES = ("_parameters", "_buffers", "_modules")
_PARAMETER_LIMIT_BYTES = 256 * 2**20
"""Above this, parameters are not copied; a forward that writes parameters of such a model is caught by version."""


@contextmanager
def preserved(module: nn.Module) -> Iterator[None]:
    """Restores buffers, parameters, plain attributes and torch's random state when the block ends."""
    saved = [(m, _attributes(m), dict(m._parameters), dict(m._buffers)) for m in module.modules()]
    tensors = {id(t): (t, t._version, _copy(t)) for t in [*module.buffers(), *_small_parameters(module)]}
    with torch.random.fork_rng(devices=[]):
        try:
            yield
        finally:
            for owner, attributes, parameters, buffers in saved:
                for name in set(owner.__dict__) - set(attributes) - set(_TABLES):
                    del owner.__dict__[name]
                owner.__dict__.update(attributes)
                owner._parameters.clear()
                owner._parameters.update(parameters)
                owner._buffers.clear()
                owner._buffers.update(buffers)
            with torch.no_grad():
                for tensor, version, copied in tensors.values():
                    if copied is not None and (tensor._version != version or _written(tensor, copied)):
                        tensor.copy_(copied)


def _written(tensor: Tensor, before: Tensor) -> bool:
    """Whether a kernel wrote without raising the version, as batch normalization does to its running statistics."""
    return not isinstance(tensor, nn.Parameter) and not torch.equal(tensor, before)


def _small_parameters(module: nn.Module) -> list[Tensor]:
    parameters = list(module.parameters())
    size_bytes = sum(p.numel() * p.element_size() for p in parameters)
    return parameters if size_bytes <= _PARAMETER_LIMIT_BYTES else []


def _copy(tensor: Tensor) -> Tensor | None:
    return tensor.detach().clone() if tensor.layout is torch.strided else None


def _attributes(module: nn.Module) -> dict[str, Any]:
    """Returns the plain attributes; containers and tensors are copied because a forward may change them in place."""
    result: dict[str, Any] = {}
    for name, value in module.__dict__.items():
        if name in _TABLES:
            continue
        mutable = isinstance(value, list | dict | set | Tensor) and not name.startswith("_")
        try:
            result[name] = copy.deepcopy(value) if mutable and not _holds_modules(value) else value
        except Exception:  # noqa: BLE001 - an attribute that cannot be copied stays itself
            result[name] = value
    return result


def _holds_modules(value: Any) -> bool:
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list | set) else ()
    return any(isinstance(item, nn.Module) for item in items)
