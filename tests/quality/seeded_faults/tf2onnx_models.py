"""One factory per fault of tf2onnx, for checking `tf2onnx_models.py:NAME` in a process of its own; see `models.py`."""

import sys
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

# The file is imported by its path, from any folder.
sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from tests.quality.seeded_faults.tf2onnx_faults import FAULTS

# Contexts that are never left; without a reference they would end.
_planted = ExitStack()


def planted_model(name: str) -> Any:
    """Plants the fault `name` and returns the model that meets it."""
    made = FAULTS[name].build()
    _planted.enter_context(FAULTS[name].plant())
    return made


def __getattr__(name: str) -> Callable[[], Any]:
    fault = name.replace("_", "-")
    if fault not in FAULTS:
        raise AttributeError(f"no seeded fault is called {fault!r}")
    return partial(planted_model, fault)


def __dir__() -> list[str]:
    return ["planted_model", *(name.replace("-", "_") for name in FAULTS)]
