"""The tasks by name; each module is imported when its task runs.

A task is a module `evaluation/<name>.py` (`_` for `-`) with two functions:

* `items() -> Iterable[str]`: the keys of what is to be measured, in order, the same in every run;
* `measure(key: str) -> dict`: one measurement as JSON values;

and optionally `JOBS: int`, how many measurements may run at once, each in a thread with a worker process of its own,
and `write_up(records: list[dict], folder: Path) -> None`, which makes tables and plots of all of them.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Protocol, cast

TASKS: tuple[str, ...] = ("kernels", "oracle", "backend", "zoo", "trained", "trained-onnx", "localization")
"""Names of modules in this package (with `_` for `-`), in the order in which they run."""


class Task(Protocol):
    """What a module of a task provides."""

    def items(self) -> Iterable[str]:
        """Returns the keys of what is to be measured."""

    def measure(self, key: str) -> dict[str, Any]:
        """Returns one measurement."""


def load(name: str) -> Task:
    """Returns the task of this name."""
    if name not in TASKS:
        raise SystemExit(f"no task is called '{name}'; there are: {', '.join(TASKS) or 'none yet'}")
    return cast(Task, importlib.import_module(f"evaluation.{name.replace('-', '_')}"))


def write_up(task: Task, records: list[dict[str, Any]], folder: Path) -> None:
    """Lets a task that can make tables of its records."""
    write = getattr(task, "write_up", None)
    if write is not None:
        write(records, folder)
