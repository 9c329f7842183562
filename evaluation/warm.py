"""One warm, isolated worker for all checks of a run of the evaluation."""

from __future__ import annotations

import atexit
from functools import cache

from trueport import Checker

LIMIT_S = 900.0


@cache
def checker() -> Checker:
    """Returns the checker; bad verdicts of its worker are confirmed in a fresh one."""
    made = Checker(timeout_s=LIMIT_S)
    atexit.register(made.close)
    return made
