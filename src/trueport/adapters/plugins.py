"""Names to adapters: a table of our own, and what other packages announce as entry points.

An adapter is a file and a line in a table. A package of somebody else announces its adapters in its own metadata, under
`trueport.converters`, `trueport.runtimes` or `trueport.sources`; a name of ours cannot be taken over.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from trueport.core.errors import MissingToolError, ToolError, UsageError


@cache
def announced(group: str) -> dict[str, EntryPoint]:
    """Returns the entry points of a group by name, as the installed packages announce them; nothing is imported.

    Raises:
        ToolError: two packages announce the same name.
    """
    found: dict[str, EntryPoint] = {}
    for point in sorted(entry_points(group=group), key=lambda p: (p.name, p.value)):
        if point.name in found and found[point.name].value != point.value:
            raise ToolError(
                f"two packages announce '{point.name}' in the group {group}: {found[point.name].value} and "
                f"{point.value}; uninstall one of them"
            )
        found[point.name] = point
    return found


def every_name(own: Mapping[str, Any], group: str) -> tuple[str, ...]:
    """Returns our names, then those of other packages."""
    return (*own, *(name for name in announced(group) if name not in own))


def imported(name: str, target: str, install: str) -> Any:
    """Returns what `module:attribute` stands for.

    Raises:
        MissingToolError: what it needs is not installed; the message names `name` and the command that installs it.
    """
    module, attribute = target.split(":")
    try:
        return getattr(import_module(module), attribute)
    except ImportError as error:
        raise MissingToolError(name, install) from error


def adapter(kind: str, name: str, own: Mapping[str, tuple[str, str]], group: str, hint: str = "") -> Any:
    """Returns the class or function behind a name.

    Args:
        kind: `converter` or `runtime`, for messages.
        name: what the user asked for.
        own: name -> ("module:attribute", the command that installs what it needs).
        group: of the entry points.
        hint: what else may be asked for, for the message.

    Raises:
        UsageError: there is no such adapter.
        MissingToolError: what it needs is not installed.
        ToolError: another package's adapter cannot be imported.
    """
    if name in own:
        return imported(name, *own[name])
    point = announced(group).get(name)
    if point is None:
        raise UsageError(f"no {kind} is called '{name}'; there are: {', '.join(every_name(own, group))}{hint}")
    try:
        return point.load()
    except Exception as error:
        raise ToolError(
            f"the {kind} '{name}' ({point.value}) cannot be loaded: {type(error).__name__}: {error}"
        ) from error
