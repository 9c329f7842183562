"""Defaults of options from `[tool.trueport]` in the nearest pyproject.toml."""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

import click

from trueport.core.errors import UsageError

FILE_NAME = "pyproject.toml"
# A folder that somebody else wrote must not be able to switch protections off: these need the user's own word.
_COMMAND_LINE_ONLY = frozenset({"trust-pickle", "no-isolate", "help"})
_PATHS = frozenset({"candidate", "inputs", "metric", "data", "save", "json"})


def load_defaults(start: Path, command: click.Command, *, known: Collection[str] = ()) -> dict[str, Any]:
    """Returns the defaults for the options of a command, by parameter name; paths are relative to the file.

    Args:
        start: the folder from which the search goes upwards; the first pyproject.toml found is the one.
        command: gives the options and their types.
        known: further options, of other commands, that may stand there and do nothing here.

    Raises:
        UsageError: the file is no TOML, or holds a key or a value that no option takes.
    """
    file = next((path for folder in (start, *start.parents) if (path := folder / FILE_NAME).is_file()), None)
    if file is None:
        return {}
    table = _table(file)
    options = {_key(option): option for option in command.params if isinstance(option, click.Option)}
    defaults = {}
    for written, value in table.items():
        key = written.replace("_", "-")
        where = f"{file}: [tool.trueport] {written}"
        if key in _COMMAND_LINE_ONLY:
            raise UsageError(f"{where}: this can be given on the command line only")
        if key not in options and key in known:
            continue
        if key not in options:
            raise UsageError(f"{where}: there is no such option{_nearest(key, options)}")
        option = options[key]
        given = _absolute(value, file.parent) if key in _PATHS else value
        defaults[str(option.name)] = _converted(given, option, where)
    return defaults


def _table(file: Path) -> dict[str, Any]:
    try:
        content = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"expected a TOML file at {file}: {error}") from error
    tool = content.get("tool", {})
    table = tool.get("trueport", {}) if isinstance(tool, dict) else {}
    if not isinstance(table, dict):
        raise UsageError(f"{file}: expected a table [tool.trueport], got {type(table).__name__}")
    return table


def _key(option: click.Option) -> str:
    return next(name for name in option.opts if name.startswith("--")).removeprefix("--")


def _nearest(key: str, options: Iterable[str]) -> str:
    import difflib

    known = [option for option in options if option not in _COMMAND_LINE_ONLY]
    nearest = difflib.get_close_matches(key, known, n=1, cutoff=0.0)
    return f"; the nearest one is '{nearest[0]}'" if nearest else ""


def _absolute(value: Any, folder: Path) -> Any:
    return str(folder / value) if isinstance(value, str) and value != "-" else value


def _converted(value: Any, option: click.Option, where: str) -> Any:
    """Returns the value as click expects it in a default map, checked here so that an error names the file."""
    if option.is_flag:
        if not isinstance(value, bool):
            raise UsageError(f"{where}: expected true or false, got {value!r}")
        return value
    parts = value if isinstance(value, list) else [value]
    if not all(isinstance(part, str | int | float) and not isinstance(part, bool) for part in parts):
        raise UsageError(f"{where}: expected a string, a number or a list of these, got {value!r}")
    texts = [str(part) for part in parts]
    given: Any = texts if option.multiple else ",".join(texts)
    try:
        option.type_cast_value(click.Context(click.Command("check")), given)
    except click.BadParameter as error:
        raise UsageError(f"{where}: {error.message}") from error
    return given
