"""A module that is already in memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import nn

from trueport.adapters.sources.fingerprint import sha256_of_module
from trueport.adapters.sources.loaded import check_examples
from trueport.adapters.sources.wording import described
from trueport.core.errors import UsageError
from trueport.core.subject import Example, Subject


def subject_of_module(
    model: Any,
    args: Any,
    kwargs: Mapping[str, Any] | None,
    *,
    dynamic_shapes: Any,
    export_options: Mapping[str, Any] | None,
    name: str | None,
) -> Subject:
    """Returns the subject of a module in memory; see `trueport.adapters.sources.subject_from_object`."""
    if not isinstance(model, nn.Module):
        raise UsageError(f"expected model to be an nn.Module instance, got {described(model)}")
    if not isinstance(args, tuple):
        raise UsageError(f"expected args to be a tuple of positional arguments, got {described(args)}; write (x,)")
    if kwargs is not None and not isinstance(kwargs, Mapping):
        raise UsageError(f"expected kwargs to be a mapping of keyword arguments, got {described(kwargs)}")
    example = Example(args, dict(kwargs or {}))
    check_examples(model, (example,), "<object>")
    return Subject(
        name=name or type(model).__name__,
        framework="torch",
        origin="<object>",
        sha256=sha256_of_module(model),
        model=model,
        examples=(example,),
        dynamic_shapes=dynamic_shapes,
        export_options=dict(export_options or {}),
    )
