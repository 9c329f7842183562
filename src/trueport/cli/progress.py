"""Shows on a terminal what a check is doing, once it takes longer than a user waits without wondering."""

from __future__ import annotations

import sys
import threading
from types import TracebackType
from typing import Any

PATIENCE_S = 2.0


class ProgressDisplay:
    """A line on standard error that follows the events of a check; nothing where that is no terminal.

    Args:
        enabled: False for `--quiet`.
        patience_s: how long nothing is shown.
    """

    def __init__(self, *, enabled: bool = True, patience_s: float = PATIENCE_S) -> None:
        self._enabled = enabled and sys.stderr.isatty()
        self._patience_s = patience_s
        self._text = "starting"
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None
        self._progress: Any = None
        self._done = False

    def __enter__(self) -> ProgressDisplay:
        """Starts the clock."""
        if self._enabled:
            # Events may be far apart, so the clock and not an event brings the line up.
            self._timer = threading.Timer(self._patience_s, self._show)
            self._timer.daemon = True
            self._timer.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Removes the line."""
        with self._lock:
            self._done = True
            if self._timer is not None:
                self._timer.cancel()
            if self._progress is not None:
                self._progress.stop()

    def on_event(self, event: dict[str, Any]) -> None:
        """Takes `{"event": "stage", "stage": ..., "checkpoint": ...}` and `{"event": "phase", "name": ...}`."""
        if event.get("event") == "stage":
            text = f"{event.get('stage', '')}: {event.get('checkpoint', '')}"
        elif event.get("event") == "phase":
            text = str(event.get("name", ""))
        else:
            return
        with self._lock:
            self._text = text
            if self._progress is not None:
                self._progress.update(0, description=_plain(text))

    def _show(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        with self._lock:
            if self._done:
                return
            columns = (BarColumn(bar_width=20), TimeElapsedColumn(), TextColumn("{task.description}", markup=False))
            self._progress = Progress(*columns, console=Console(stderr=True), transient=True, redirect_stdout=False)
            self._progress.add_task(_plain(self._text), total=None)
            self._progress.start()


def _plain(text: str) -> str:
    from trueport.report.visible import visible

    return visible(text)
