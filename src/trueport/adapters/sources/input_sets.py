"""What every framework's sources have in common where users give inputs: lists of sets, and `--inputs`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from trueport.adapters.sources.file_import import object_of_file
from trueport.adapters.sources.wording import described
from trueport.core.errors import UsageError
from trueport.core.subject import Example


def examples_of_each(value: Any, where: str, one: Callable[[Any, str, str], Example]) -> tuple[Example, ...]:
    """Returns one example for a value, or one for each item of a list.

    Args:
        value: what the user wrote; a list stands for several input sets.
        where: the place for messages.
        one: makes the example of (input set, its place, its label); the first is labelled `example`.

    Raises:
        UsageError: the list is empty.
    """
    if not isinstance(value, list):
        return (one(value, where, "example"),)
    if not value:
        raise UsageError(f"expected {where} to hold at least one input set, got an empty list")
    return tuple(one(item, f"{where}[{i}]", "example" if i == 0 else f"inputs[{i}]") for i, item in enumerate(value))


def examples_of_option(
    option: str,
    seed: int,
    *,
    of_arrays: Callable[[str], tuple[Example, ...]],
    of_value: Callable[[Any, str], tuple[Example, ...]],
) -> tuple[Example, ...]:
    """Returns the examples that `--inputs` names.

    Args:
        option: `file.npz`, or `file.py[:NAME]`.
        seed: seeds the global generators while a Python file runs.
        of_arrays: makes them of the path of an `.npz`.
        of_value: makes them of a value in a Python file and its place.

    Raises:
        UsageError: it is none of the two.
    """
    lower = option.lower()
    if lower.endswith(".npz"):
        return of_arrays(option)
    if lower.endswith(".py") or lower.rpartition(":")[0].endswith(".py"):
        found = object_of_file(option, default_name="inputs", seed=seed)
        return of_value(found.value, f"'{found.path.name}:{found.name}'")
    raise UsageError(f"expected --inputs to be file.npz or file.py:NAME, got '{option}'")


def require_call(args: Any, kwargs: Any, where: str) -> None:
    """Raises a `UsageError` where what came with a model is not the arguments of one call."""
    if not isinstance(args, tuple):
        raise UsageError(f"expected the args that {where} returns to be a tuple, got {described(args)}; write (x,)")
    if not isinstance(kwargs, Mapping) or not all(isinstance(key, str) for key in kwargs):
        raise UsageError(
            f"expected the kwargs that {where} returns to be a dict by parameter name, got {described(kwargs)}"
        )


def export_options_of(value: Any, file_name: str) -> dict[str, Any]:
    """Returns the `export_options` of a user's file.

    Raises:
        UsageError: they are no dict of options by name.
    """
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise UsageError(
            f"expected `export_options` of '{file_name}' to be a dict of options by name, got {described(value)}"
        )
    return dict(value)
