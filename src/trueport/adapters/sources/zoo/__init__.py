"""Real architectures of transformers and Keras in small configurations, without any download.

Listing them builds nothing and imports no framework.
"""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass

__all__ = ["ZooEntry", "list_zoo"]


@dataclass(frozen=True)
class ZooEntry:
    """One model of the zoo.

    Attributes:
        name: what the user writes, `zoo:hf/NAME` or `zoo:keras/NAME`.
        description: one line for people.
        available: whether it can be built here.
        missing: what is missing where it cannot, else empty.
    """

    name: str
    description: str
    available: bool
    missing: str = ""


def list_zoo() -> list[ZooEntry]:
    """Returns every model of the zoo in the order of the table, with what is missing here; builds none."""
    from trueport.adapters.sources.zoo.architectures import ARCHITECTURES

    absent = missing_libraries()
    # transformers knows its names without importing the modules behind them.
    known = frozenset() if absent else frozenset(dir(importlib.import_module("transformers")))
    entries = []
    for name, entry in ARCHITECTURES.items():
        lacking = [cls for cls in (entry.config, entry.model) if cls not in known]
        missing = absent or (f"{' and '.join(lacking)} in this release of transformers" if lacking else "")
        entries.append(ZooEntry(f"zoo:hf/{name}", entry.description, not missing, missing))
    return [*entries, *_keras_entries()]


def _keras_entries() -> list[ZooEntry]:
    from trueport.adapters.sources.zoo.keras_architectures import KERAS

    absent = importlib.util.find_spec("tensorflow") is None
    missing = "tensorflow (pip install 'trueport[tensorflow]')" if absent else ""
    return [ZooEntry(f"zoo:keras/{name}", entry.description, not missing, missing) for name, entry in KERAS.items()]


def missing_libraries() -> str:
    """Returns which library the zoo needs and is not installed, with the command that installs it; empty for none."""
    for library, extra in (("torch", "torch"), ("transformers", "zoo")):
        if importlib.util.find_spec(library) is None:
            return f"{library} (pip install 'trueport[{extra}]')"
    return ""
