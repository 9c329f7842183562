"""Names for the leaves of a call's arguments: those of `forward`, with `name.0` and `name.key` inside structures."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from torch.utils import _pytree as pytree

from trueport.adapters.sources.wording import without_annotations


def leaf_names(model: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Returns every leaf of `args` and then of `kwargs` with its name, in the order of torch's own flattening.

    A positional argument has the name of its parameter in `model.forward`; one that falls to `*args` is
    `args.0`, one without a readable signature `arg0`.  Classes registered with torch's pytree are opened.
    """
    names = _positional_names(model, len(args))
    named = [*zip(names, args, strict=True), *((str(key), value) for key, value in kwargs.items())]
    leaves: list[tuple[str, Any]] = []
    for name, value in named:
        leaves.extend((_joined(name, path), leaf) for path, leaf in _flattened(value))
    return leaves


def forward_parameters(model: Any) -> dict[str, inspect.Parameter]:
    """Returns the parameters of `model.forward` by name; empty when its signature cannot be read."""
    schema = getattr(model.forward, "schema", None)
    if schema is not None:  # TorchScript hides its parameters from Python
        return {a.name: _script_parameter(a) for a in schema.arguments if a.name != "self"}
    try:
        return dict(inspect.signature(model.forward).parameters)
    except (TypeError, ValueError):
        return {}


def misfit(model: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str | None:
    """Returns why a call with these arguments cannot even start, in Python's words, or None."""
    parameters = forward_parameters(model)
    if not parameters:
        return None
    signature = inspect.Signature(list(parameters.values()))
    try:
        signature.bind(*args, **kwargs)
    except TypeError as error:
        return f"{error} of forward{without_annotations(signature)}"
    return None


def _script_parameter(argument: Any) -> inspect.Parameter:
    default = argument.default_value if argument.has_default_value() else inspect.Parameter.empty
    return inspect.Parameter(argument.name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default)


def _positional_names(model: Any, count: int) -> list[str]:
    parameters = forward_parameters(model).values()
    positional = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    rest = next((p.name for p in parameters if p.kind is p.VAR_POSITIONAL), None)
    names = positional[:count]
    for index in range(count - len(names)):
        names.append(f"{rest}.{index}" if rest else f"arg{len(positional) + index}")
    return names


def _flattened(value: Any) -> list[tuple[list[str], Any]]:
    try:
        with_paths, _ = pytree.tree_flatten_with_path(value)
    except ValueError:
        # A registered class whose registration tells no keys: its leaves are numbered.
        return [([str(index)], leaf) for index, leaf in enumerate(pytree.tree_leaves(value))]
    return [([_step(key) for key in path], leaf) for path, leaf in with_paths]


def _step(key: Any) -> str:
    for attribute in ("idx", "key", "name"):
        if hasattr(key, attribute):
            return str(getattr(key, attribute))
    return str(key)


def _joined(name: str, path: Sequence[str]) -> str:
    return ".".join([name, *path])
