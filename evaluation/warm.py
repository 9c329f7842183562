"""One warm, isolated worker for all checks of a run of the evaluation."""

from __future__ import annotations

import atexit
import threading

from trueport import Checker

LIMIT_S = 900.0


_OF_THREAD = threading.local()


def checker() -> Checker:
    """Returns the checker of this thread; bad verdicts of its worker are confirmed in a fresh one."""
    made: Checker | None = getattr(_OF_THREAD, "checker", None)
    if made is None:
        made = Checker(timeout_s=LIMIT_S)
        _OF_THREAD.checker = made
        atexit.register(made.close)
    return made
