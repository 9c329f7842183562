"""What the zoo holds."""

from __future__ import annotations

from typing import Any


def list_zoo() -> list[Any]:
    """Returns the zoo's entries, with what is missing for those that cannot be built here."""
    from trueport.adapters.sources.zoo import list_zoo as entries

    return list(entries())
