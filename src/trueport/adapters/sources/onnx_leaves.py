"""The inputs of an ONNX subject as the engines draw them: one leaf per tensor, with its domain and dynamic axes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueport.adapters.sources.requested_axes import requested_axis
from trueport.core.domain import Domain
from trueport.core.options import DynamicAxis as RequestedAxis
from trueport.core.subject import Subject
from trueport.inputs.spec import DynamicAxis, LeafSpec
from trueport.onnxgraph.domains import input_domains
from trueport.onnxgraph.interface import element_name, read_interface
from trueport.onnxgraph.shapes import symbol_of

Array = NDArray[Any]


def onnx_leaves(subject: Subject, requested: Sequence[RequestedAxis] = ()) -> list[LeafSpec]:
    """Returns the tensor inputs with the values of the first example, in the order of the model's inputs.

    A sequence input `s` is the leaves `s.0`, `s.1` and so on; an input that is absent has none.

    Args:
        subject: of framework `onnx`.
        requested: dynamic axes that the user asked for.

    Raises:
        UsageError: a requested axis is not there, or the model declares a fixed size for it.
    """
    domains = input_domains(subject.model)
    axes = onnx_axes(subject, requested, domains)
    if requested:
        domains = _renamed(subject, axes, domains)
    specs = []
    for name, leaf, owner in _named(subject, 0):
        own = {axis.axis: axis for axis in axes if axis.input == name}
        specs.append(LeafSpec(name, leaf, own, domains.get(owner)))
    return specs


def onnx_axes(
    subject: Subject, requested: Sequence[RequestedAxis] = (), domains: dict[str, Domain] | None = None
) -> list[DynamicAxis]:
    """Returns the axes of tensor inputs that the model declares with a symbol or not at all.

    Axes with the same symbol vary together; one without a symbol varies alone. Axes that the user asked for replace
    them. Axes of settings (a target shape) do not vary.

    Raises:
        UsageError: a requested axis is not there, or the model declares a fixed size for it.
    """
    domains = input_domains(subject.model) if domains is None else domains
    interface = read_interface(subject.model)
    infos = {v.name: v for v in (*interface.inputs, *interface.optional)}
    declared = []
    shapes = {}
    for name, leaf, owner in _named(subject, 0):
        info, domain = infos[owner], domains.get(owner)
        if name != owner or (domain is not None and domain.fixed):
            continue
        shapes[name] = leaf.shape
        dims = (info.element or info).dims
        for axis, dim in enumerate(dims if dims is not None else ()):
            if not isinstance(dim, int) or dim < 0:
                symbol = dim if isinstance(dim, str) else symbol_of(name, axis)
                declared.append(DynamicAxis(name, axis, symbol))
        if dims is None:
            declared += [DynamicAxis(name, axis, symbol_of(name, axis)) for axis in range(leaf.ndim)]
    if not requested:
        return declared
    return [requested_axis(item, declared, shapes, who="the model") for item in requested]


def onnx_given(subject: Subject) -> list[tuple[Array, ...]]:
    """Returns the further examples that have the same leaves as the first, each in the order of `onnx_leaves`.

    Sets with other numbers of tensors in a sequence are left out: input sets have one form.
    """
    names = [name for name, _, _ in _named(subject, 0)]
    sets = []
    for number in range(1, len(subject.examples)):
        leaves = _named(subject, number)
        if [name for name, _, _ in leaves] == names:
            sets.append(tuple(leaf for _, leaf, _ in leaves))
    return sets


def _renamed(subject: Subject, axes: Sequence[DynamicAxis], domains: dict[str, Domain]) -> dict[str, Domain]:
    """Returns the domains with the user's symbols for those of the model, and with sizes for axes that do not vary."""
    mine = {(axis.input, axis.axis): axis.symbol for axis in axes}
    values = {name: leaf for name, leaf, _ in _named(subject, 0)}
    symbols: dict[str, str] = {}
    sizes: dict[str, int] = {}
    for axis in onnx_axes(subject, (), domains):
        sizes.setdefault(axis.symbol, values[axis.input].shape[axis.axis])
        if (axis.input, axis.axis) in mine:
            symbols[axis.symbol] = mine[axis.input, axis.axis]
    made = dict(domains)
    for name, domain in domains.items():
        if domain.high_symbol in symbols:
            made[name] = replace(domain, high_symbol=symbols[domain.high_symbol])
        elif domain.high_symbol in sizes:
            made[name] = domain.at({domain.high_symbol: sizes[domain.high_symbol]})
    return made


def _named(subject: Subject, number: int) -> list[tuple[str, Array, str]]:
    """Returns (leaf, value, input that it belongs to)."""
    found: list[tuple[str, Array, str]] = []
    for name, value in subject.examples[number].kwargs.items():
        if isinstance(value, list | tuple):
            found += [(element_name(name, i), np.asarray(item), name) for i, item in enumerate(value)]
        elif value is not None:
            found.append((name, np.asarray(value), name))
    return found
