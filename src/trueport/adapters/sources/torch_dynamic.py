"""Between the ways of saying which axes are dynamic: `torch.export`'s structures, named axes, axes of input sets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from torch import Tensor
from torch.utils import _pytree as pytree

from trueport.adapters.sources.torch_inputs import forward_parameters, leaf_names
from trueport.core.errors import UsageError
from trueport.core.options import DynamicAxis as RequestedAxis
from trueport.core.subject import Subject
from trueport.inputs.spec import DynamicAxis


def tensor_leaves(subject: Subject, number: int = 0) -> list[tuple[str, Tensor]]:
    """Returns (name, tensor) of the tensor inputs of an example, in flattening order."""
    example = subject.examples[number]
    return [
        (n, leaf) for n, leaf in leaf_names(subject.model, example.args, example.kwargs) if isinstance(leaf, Tensor)
    ]


def dynamic_axes(subject: Subject) -> list[DynamicAxis]:
    """Returns the axes that `subject.dynamic_shapes` declares dynamic.

    Axes that only carry a hint (`Dim.AUTO`, `Dim.DYNAMIC`) have no name: those of equal index and size are varied
    together, because inputs of one batch belong together.
    """
    if subject.dynamic_shapes is None:
        return []
    found = []
    for name, tensor, spec in _leaf_specs(subject):
        for axis, wanted in _axes_of(spec):
            made = _axis(name, axis % max(tensor.dim(), 1), wanted, tensor)
            if made is not None:
                found.append(made)
    return found


def with_dynamic_axes(subject: Subject, requested: Sequence[RequestedAxis]) -> Subject:
    """Returns the subject with `dynamic_shapes` made of named axes; what the source declared itself is replaced.

    Raises:
        UsageError: an axis names an input or an axis that is not there.
    """
    if not requested:
        return subject
    leaves = dict(tensor_leaves(subject))
    wanted: dict[str, dict[int, Any]] = {}
    for item in requested:
        tensor = leaves.get(item.input)
        if tensor is None:
            raise UsageError(f"--dynamic: no tensor input is called '{item.input}'; there are: {', '.join(leaves)}")
        if item.axis >= tensor.dim():
            shape = ",".join(map(str, tensor.shape))
            raise UsageError(f"--dynamic: input '{item.input}' has no axis {item.axis}; its shape is [{shape}]")
        wanted.setdefault(item.input, {})[item.axis] = _dim(item)
    example = subject.examples[0]
    names = iter(name for name, _ in leaf_names(subject.model, example.args, example.kwargs))

    def shape_of(leaf: Any) -> Any:
        name = next(names)
        return wanted.get(name, {}) if isinstance(leaf, Tensor) else None

    args, kwargs = pytree.tree_map(shape_of, (tuple(example.args), dict(example.kwargs)))
    parameters = list(forward_parameters(subject.model))
    shapes = {**dict(zip(parameters, args, strict=False)), **kwargs} if kwargs else tuple(args)
    return replace(subject, dynamic_shapes=shapes)


def _dim(item: RequestedAxis) -> Any:
    from torch.export import Dim

    limits: dict[str, int] = {}
    if item.minimum > 1:
        limits["min"] = item.minimum
    if item.maximum is not None:
        limits["max"] = item.maximum
    return Dim(item.symbol, **limits)


def _leaf_specs(subject: Subject) -> Iterator[tuple[str, Tensor, Any]]:
    """Yields (name, tensor, its part of `dynamic_shapes`)."""
    example, shapes = subject.examples[0], subject.dynamic_shapes
    parameters = list(forward_parameters(subject.model))
    if isinstance(shapes, Mapping):
        positional = [shapes.get(p) for p, _ in zip(parameters, example.args, strict=False)]
        keyword = {k: shapes.get(k) for k in example.kwargs}
    else:
        listed = _opened(list(shapes), subject.model, len(example.args))
        positional = listed[: len(example.args)]
        keyword = dict(zip(example.kwargs, listed[len(example.args) :], strict=False))
    named = leaf_names(subject.model, example.args, example.kwargs)
    specs = [
        spec
        for value, spec in [
            *zip(example.args, [*positional, *[None] * len(example.args)], strict=False),
            *((v, keyword.get(k)) for k, v in example.kwargs.items()),
        ]
        for spec in _spread(value, spec)
    ]
    for (name, leaf), spec in zip(named, specs, strict=True):
        if isinstance(leaf, Tensor):
            yield name, leaf, spec


def _opened(shapes: list[Any], model: Any, count: int) -> list[Any]:
    """Opens the part for `*args`, which `torch.export` takes as one tuple."""
    for number, parameter in enumerate(forward_parameters(model).values()):
        if parameter.kind is parameter.VAR_POSITIONAL and number < len(shapes):
            inner = shapes[number]
            if isinstance(inner, list | tuple) and len(inner) == count - number:
                return [*shapes[:number], *inner, *shapes[number + 1 :]]
    return shapes


def _spread(value: Any, spec: Any) -> list[Any]:
    """Returns one part of the specification per leaf of the value."""
    count = len(pytree.tree_leaves(value))
    if spec is None or isinstance(value, Tensor):
        return [spec] * count
    if isinstance(value, Mapping) and isinstance(spec, Mapping):
        return [part for key, item in value.items() for part in _spread(item, spec.get(key))]
    if isinstance(value, list | tuple) and isinstance(spec, list | tuple):
        return [part for item, inner in zip(value, spec, strict=False) for part in _spread(item, inner)]
    flat = pytree.tree_leaves(
        spec, is_leaf=lambda s: s is None or (isinstance(s, Mapping) and all(isinstance(k, int) for k in s))
    )
    return flat if len(flat) == count else [None] * count


def _axes_of(spec: Any) -> list[tuple[int, Any]]:
    if isinstance(spec, Mapping):
        return [(int(axis), wanted) for axis, wanted in spec.items()]
    if isinstance(spec, list | tuple):
        return list(enumerate(spec))
    return []


def _axis(name: str, axis: int, wanted: Any, tensor: Tensor) -> DynamicAxis | None:
    """Returns the axis, or None where it is fixed."""
    if wanted is None or isinstance(wanted, int):
        return None
    if isinstance(wanted, str):
        return DynamicAxis(name, axis, wanted)
    hint = getattr(getattr(wanted, "type", None), "name", "")
    if hint == "STATIC":
        return None
    if hint:
        low, high = getattr(wanted, "min", None), getattr(wanted, "max", None)
        return DynamicAxis(name, axis, f"d{axis}_{tensor.shape[axis]}", low or 1, high)
    root = getattr(wanted, "root", None)
    if root is not None:
        offset = wanted.fn(0)
        return DynamicAxis(
            name, axis, root.__name__, _low(root), _high(root), scale=int(wanted.fn(1) - offset), offset=int(offset)
        )
    return DynamicAxis(name, axis, wanted.__name__, _low(wanted), _high(wanted))


def _low(dim: Any) -> int:
    return max(int(dim.min), 1)


def _high(dim: Any) -> int | None:
    high = getattr(dim, "max", None)
    return int(high) if isinstance(high, int) and high < 2**31 else None
