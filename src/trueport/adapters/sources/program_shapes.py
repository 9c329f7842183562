"""Reads the dynamic dimensions of an `ExportedProgram` back into the form in which `torch.export` takes them."""

from __future__ import annotations

import inspect
from typing import Any

import torch
from torch.export import Dim, ExportedProgram
from torch.utils import _pytree as pytree


def dynamic_shapes_of(program: ExportedProgram) -> Any:
    """Returns `dynamic_shapes` for exporting `program.module()` again, or None when every size is fixed.

    One `Dim` stands for one symbol of the program, with the program's range; a size `a*s + b` becomes the same
    expression of it.  Any other expression is left to the exporter (`Dim.AUTO`).
    """
    symbols: dict[str, Any] = {}
    user_inputs = [spec.arg.name for spec in program.graph_signature.input_specs if spec.kind.name == "USER_INPUT"]
    nodes = {node.name: node for node in program.graph.nodes if node.op == "placeholder"}
    specs = [
        _dimensions(nodes[name].meta.get("val"), program, symbols) if name in nodes else None for name in user_inputs
    ]
    if not symbols and not any(specs):
        return None
    args, kwargs = pytree.tree_unflatten(specs, program.call_spec.in_spec)
    return _by_parameter(program, args, kwargs) if kwargs else args


def _by_parameter(program: ExportedProgram, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    parameters = inspect.signature(program.module().forward).parameters
    names = [name for name in parameters if name not in kwargs][: len(args)]
    return dict(zip(names, args, strict=True)) | kwargs


def _dimensions(value: Any, program: ExportedProgram, symbols: dict[str, Any]) -> dict[int, Any] | None:
    if not isinstance(value, torch.Tensor):
        return None
    dynamic = {
        axis: _dimension(size.node.expr, program, symbols)
        for axis, size in enumerate(value.shape)
        if isinstance(size, torch.SymInt) and size.node.expr.free_symbols
    }
    return dynamic or None


def _dimension(expression: Any, program: ExportedProgram, symbols: dict[str, Any]) -> Any:
    free = sorted(expression.free_symbols, key=str)
    polynomial = expression.as_poly(*free) if len(free) == 1 else None
    if polynomial is None or polynomial.degree() != 1:
        return Dim.AUTO
    factor, offset = (int(c) for c in polynomial.all_coeffs())
    name = str(free[0])
    if name not in symbols:
        symbols[name] = Dim(name, **_bounds(free[0], program))
    dim = symbols[name]
    scaled = dim if factor == 1 else factor * dim
    return scaled if offset == 0 else scaled + offset


def _bounds(symbol: Any, program: ExportedProgram) -> dict[str, int]:
    interval = program.range_constraints.get(symbol)
    if interval is None:
        return {}
    # An open end is a symbolic infinity, which is no Python number.
    ends = {"min": interval.lower, "max": interval.upper}
    return {end: int(value) for end, value in ends.items() if isinstance(value, int) or value.is_Integer}
