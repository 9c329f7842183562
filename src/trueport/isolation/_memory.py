"""The resident size of a process and everything that it started."""

from __future__ import annotations

import time
from typing import Any

MIB = 1024 * 1024
_TREE_INTERVAL_S = 0.05
# Walking the process table costs more the more processes a machine runs; it may take this share of one core.
_TREE_SHARE = 0.05


class TreeMemory:
    """Samples a process tree. Processes once seen stay counted when they leave the tree.

    Pages that processes share are counted once for each: the sum is never too small.
    """

    def __init__(self, pid: int) -> None:
        import psutil

        self._gone: tuple[type[Exception], ...] = (psutil.Error, OSError)
        self._root = psutil.Process(pid)
        self._descendants: dict[int, Any] = {}
        self._next_walk = 0.0

    def sample_bytes(self) -> int:
        """Returns the resident size now; 0 for what is already gone."""
        self.walk()
        total = self._resident(self._root)
        for pid, process in tuple(self._descendants.items()):
            size = self._resident(process)
            if size == 0 and not process.is_running():
                del self._descendants[pid]
            total += size
        return total

    def walk(self, *, now: bool = False) -> None:
        """Looks for new descendants when it is time for that, or `now`."""
        start = time.monotonic()
        if start < self._next_walk and not now:
            return
        try:
            for child in self._root.children(recursive=True):
                self._descendants.setdefault(child.pid, child)
        except self._gone:
            pass
        end = time.monotonic()
        self._next_walk = end + max(_TREE_INTERVAL_S, (end - start) / _TREE_SHARE)

    def end_descendants(self) -> None:
        """Kills every descendant ever seen that still runs (`psutil` compares start times, so none other is hit)."""
        for process in self._descendants.values():
            try:
                process.kill()
            except self._gone:
                continue

    def _resident(self, process: Any) -> int:
        try:
            return int(process.memory_info().rss)
        except self._gone:
            return 0
