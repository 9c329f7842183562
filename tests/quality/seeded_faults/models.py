"""One factory per seeded fault, for checking `models.py:NAME` in a process of its own.

A factory's name is that of its fault with underscores. Calling it plants the fault for the life of the process.
"""

import sys
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

# The file is imported by its path, from any folder.
sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from tests.quality.seeded_faults import FAULTS

# Contexts that are never left; without a reference they would end.
_planted = ExitStack()


def planted_model(name: str, seed: int = 0) -> tuple[Any, tuple[Any, ...]]:
    """Plants the fault `name` and returns the module that meets it with its inputs."""
    fault = FAULTS[name]
    subject = fault.build(seed)
    _planted.enter_context(fault.plant())
    return subject


def __getattr__(name: str) -> Callable[[], tuple[Any, tuple[Any, ...]]]:
    fault = name.replace("_", "-")
    if fault not in FAULTS:
        raise AttributeError(f"no seeded fault is called {fault!r}")
    return partial(planted_model, fault)


def __dir__() -> list[str]:
    return ["planted_model", *(name.replace("-", "_") for name in FAULTS)]
