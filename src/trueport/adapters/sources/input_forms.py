"""The forms in which a user writes inputs: a tuple, one tensor, a dict, or a list of several of these."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch.utils import _pytree as pytree

from trueport.adapters.sources.input_sets import examples_of_each
from trueport.adapters.sources.wording import described
from trueport.core.errors import UsageError
from trueport.core.subject import Example

_FORMS = "a tuple of arguments, a single tensor, a dict of keyword arguments, or a list of several of these"


def examples_from_value(value: Any, where: str) -> tuple[Example, ...]:
    """Returns one example per input set; the first is labelled `example`, the others by their place.

    Args:
        value: what stands at `where`.
        where: the place for messages, such as `inputs of model.py`.

    Raises:
        UsageError: `value` has none of the forms, or is an empty list.
    """
    return examples_of_each(value, where, _one)


def has_input_form(value: Any) -> bool:
    """Tells whether `value` looks like inputs: tensors somewhere, in one of the accepted forms."""
    if isinstance(value, list):
        return bool(value) and all(not isinstance(item, list) and has_input_form(item) for item in value)
    leaves = pytree.tree_leaves(value)
    return isinstance(value, tuple | torch.Tensor | Mapping) and any(isinstance(x, torch.Tensor) for x in leaves)


def _one(value: Any, where: str, label: str) -> Example:
    if isinstance(value, tuple):
        return Example(args=value, label=label)
    if isinstance(value, torch.Tensor):
        return Example(args=(value,), label=label)
    if isinstance(value, Mapping):
        bad = [key for key in value if not isinstance(key, str)]
        if bad:
            raise UsageError(f"expected the keys of {where} to be parameter names, got {described(bad[0])}")
        return Example(kwargs=dict(value), label=label)
    advice = "; call it in the file, as in `inputs = make_inputs()`" if callable(value) else ""
    raise UsageError(f"expected {where} to be {_FORMS}; got {described(value)}{advice}")
