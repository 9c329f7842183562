"""Puts named tensors into the arguments of a call."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import torch
from torch import nn
from torch.utils import _pytree as pytree

from trueport.adapters.sources.torch_inputs import forward_parameters, leaf_names
from trueport.adapters.sources.wording import choices, described, listed
from trueport.core.errors import UsageError
from trueport.core.subject import Example


def with_leaves(
    example: Example, model: nn.Module, tensors: Mapping[str, torch.Tensor], where: str, *, complete: bool
) -> Example:
    """Returns the example with the named leaves replaced; dtype and rank must be those of the present leaf.

    Args:
        example: gives the structure of the call.
        model: names the leaves; `arg0` or `0` stands for the first one.
        tensors: the new leaves by name.
        where: the place for messages.
        complete: every tensor of the example must be replaced.

    Raises:
        UsageError: a name is unknown or missing, or a tensor has another dtype or rank.
    """
    named = leaf_names(model, example.args, example.kwargs)
    names = [name for name, _ in named]
    chosen = {_resolved(name, names, where): tensor for name, tensor in tensors.items()}
    if len(chosen) != len(tensors):
        raise UsageError(f"{where} gives an input twice: {listed(tensors)} stand for {listed(chosen)}")
    missing = [name for name, leaf in named if isinstance(leaf, torch.Tensor) and name not in chosen]
    if complete and missing:
        raise UsageError(f"{where} gives {listed(tensors)}, but the model also takes {listed(missing)}")
    for name, leaf in named:
        if name in chosen:
            _check_kind(name, leaf, chosen[name], where)
    leaves = [chosen.get(name, leaf) for name, leaf in named]
    _, structure = pytree.tree_flatten((example.args, dict(example.kwargs)))
    args, kwargs = pytree.tree_unflatten(leaves, structure)
    return Example(args, kwargs, example.label)


def call_from_names(model: nn.Module, tensors: Mapping[str, torch.Tensor], where: str) -> Example:
    """Returns a call made of named tensors alone, for a model without any example.

    Raises:
        UsageError: a name is no parameter of `forward`, or a parameter without default has no tensor.
    """
    parameters = forward_parameters(model)
    open_ended = {p.kind for p in parameters.values()} & {
        inspect.Parameter.VAR_POSITIONAL,
        inspect.Parameter.VAR_KEYWORD,
    }
    single = [p for p in parameters.values() if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    if not single and open_ended:
        return Example(args=tuple(tensors.values()))
    names = [p.name for p in single]
    chosen = {_resolved(name, names, where): tensor for name, tensor in tensors.items()}
    missing = [p.name for p in single if p.default is p.empty and p.name not in chosen]
    if missing:
        raise UsageError(f"{where} gives {listed(tensors)}, but forward also needs {listed(missing)}")
    return _call(single, chosen)


def _call(parameters: list[inspect.Parameter], chosen: Mapping[str, torch.Tensor]) -> Example:
    """Passes arguments by position up to the first parameter that is left to its default, the others by name."""
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    positional = True
    for parameter in parameters:
        positional = positional and parameter.kind is not parameter.KEYWORD_ONLY and parameter.name in chosen
        if positional:
            args.append(chosen[parameter.name])
        elif parameter.name in chosen:
            kwargs[parameter.name] = chosen[parameter.name]
    return Example(tuple(args), kwargs)


def _resolved(name: str, names: list[str], where: str) -> str:
    if name in names:
        return name
    position = name.removeprefix("arg_").removeprefix("arg")
    if position.isdecimal() and int(position) < len(names):
        return names[int(position)]
    raise UsageError(
        f"{where} has a tensor '{name}', which is no input of the model{choices(name, names, 'its inputs are')}"
    )


def _check_kind(name: str, present: Any, given: torch.Tensor, where: str) -> None:
    if not isinstance(present, torch.Tensor):
        raise UsageError(f"{where} gives {described(given)} for '{name}', which is no tensor but {described(present)}")
    if given.dtype != present.dtype or given.dim() != present.dim():
        what = "dtype" if given.dtype != present.dtype else "rank"
        raise UsageError(
            f"{where} has another {what} for '{name}': expected {described(present)} "
            f"(sizes may differ), got {described(given)}"
        )
