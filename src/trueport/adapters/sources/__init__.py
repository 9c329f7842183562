"""Turns what the user names into a `Subject`: one file per kind of source, found through one registry.

Nothing here imports a framework; the module of a source kind is imported when a specification is of its kind.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from trueport.adapters.sources.registry import SourceRequest, source_kind
from trueport.core.subject import Subject

__all__ = ["SourceRequest", "load_subject", "subject_from_object"]


def load_subject(
    spec: str,
    *,
    trust_pickle: bool = False,
    inputs: str | None = None,
    input_shapes: Mapping[str, Sequence[int]] = MappingProxyType({}),
    seed: int = 0,
) -> Subject:
    """Returns the subject that `spec` names, with at least one example.

    Files of Python code are executed: call this in a process that may be lost.  The state of the random
    generators, `sys.path` and torch's defaults are the same afterwards; equal arguments give equal weights.

    Args:
        spec: `file.py[:NAME]`, `model.pt2`, `zoo:hf/NAME`, or a pickle together with `trust_pickle`.
        trust_pickle: the user's explicit word that unpickling this file may run code.
        inputs: `file.npz` or `file.py[:NAME]`; replaces the examples of the source.
        input_shapes: shapes of inputs by name; their values are drawn from `seed`.
        seed: seeds every drawn value, and the global generators while the user's code builds its model.

    Raises:
        UsageError: `spec` or the inputs cannot be used.
        SourceError: the user's own code raised.
        MissingToolError: a library that the source needs is not installed.
    """
    request = SourceRequest(spec, trust_pickle, inputs, MappingProxyType(dict(input_shapes)), seed)
    return source_kind(spec).load(request)


def subject_from_object(
    model: Any,
    args: Any,
    kwargs: Mapping[str, Any] | None = None,
    *,
    dynamic_shapes: Any = None,
    export_options: Mapping[str, Any] | None = None,
    name: str | None = None,
) -> Subject:
    """Returns a subject made of a module in memory; the module is kept as it is, in its present mode.

    Args:
        model: an `nn.Module`.
        args: the tuple of positional arguments of one call.
        kwargs: the keyword arguments of that call.
        dynamic_shapes: as `torch.export.export` takes it.
        export_options: further options of the exporter.
        name: for people; the name of the class when it is not given.

    Raises:
        UsageError: `model` is no module, `args` is no tuple, or the arguments do not fit its `forward`.
    """
    from trueport.adapters.sources.module_object import subject_of_module

    return subject_of_module(
        model, args, kwargs, dynamic_shapes=dynamic_shapes, export_options=export_options, name=name
    )
