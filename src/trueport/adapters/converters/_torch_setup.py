"""Model-independent set-up of the exporter, built once per process instead of once per export.

Two thirds of a small model's export go into collecting operators and decompositions, the same for every model as long
as nothing is registered in between; what is registered is part of the cache's key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

import torch
import torch._export.utils as export_utils
from torch.export import decomp_utils, exported_program
from torch.onnx._internal.exporter import _decomp

_collected: dict[Any, set[Any]] = {}
_tables: dict[Any, dict[Any, Callable[..., Any]]] = {}
_collect: Callable[[], set[Any]] = export_utils._collect_all_valid_cia_ops
_make_table: Callable[[set[Any]], dict[Any, Callable[..., Any]]] = _decomp.create_onnx_friendly_decomposition_table


@contextmanager
def cached_setup() -> Iterator[None]:
    """Answers the exporter's two expensive model-independent questions from a cache while the block runs."""
    with ExitStack() as stack:
        for module in (exported_program, decomp_utils):
            stack.enter_context(mock.patch.object(module, "_collect_all_valid_cia_ops", _cached_operators))
        stack.enter_context(mock.patch.object(_decomp, "create_onnx_friendly_decomposition_table", _cached_table))
        yield


def _registered() -> tuple[Any, ...]:
    """Changes whenever an operator or a decomposition is registered."""
    spaces = sorted(name for name in torch.ops._dir if name != "aten")
    sizes = tuple((name, len(getattr(getattr(torch.ops, name, None), "_dir", ()))) for name in spaces)
    table = torch._decomp.decomposition_table
    return sizes, len(table), hash(tuple(map(id, table.values())))


def _cached_operators() -> set[Any]:
    key = _registered()[0]
    if key not in _collected:
        found = _collect()
        _collected.clear()
        _collected[_registered()[0]] = found
        return found
    return _collected[key]


def _cached_table(registered: set[Any]) -> dict[Any, Callable[..., Any]]:
    key = (_registered(), frozenset(registered))
    if key not in _tables:
        table = _make_table(registered)
        _tables.clear()
        _tables[(_registered(), frozenset(registered))] = table
        return dict(table)
    return dict(_tables[key])
