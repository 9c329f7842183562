"""How much memory the values of a search may take beside what the check holds already."""

from __future__ import annotations

import psutil

LIMIT_BYTES = 2 * 2**30
"""What the values of one run may take; nodes whose values do not fit are judged together with those after them."""
LEAST_BYTES = 64 * 2**20
_SHARE = 1 / 3
"""Two runs may be held at once, and an evaluation needs room of its own."""


def budget_bytes(memory_mb: int | None, *, held_bytes: int | None = None) -> int:
    """Returns what the values of one run may take.

    Args:
        memory_mb: the limit of the process, in MiB; None for no limit.
        held_bytes: what it holds now; its resident size unless given.
    """
    if memory_mb is None:
        return LIMIT_BYTES
    held = psutil.Process().memory_info().rss if held_bytes is None else held_bytes
    left = memory_mb * 2**20 - held
    return max(min(int(left * _SHARE), LIMIT_BYTES), LEAST_BYTES)
