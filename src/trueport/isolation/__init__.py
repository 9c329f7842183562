"""Runs one request in a process of its own, with limits, and says how it ended.

A converter that segfaults, hangs, leaves with `os._exit` or eats the machine's memory must cost one request and become
a value; nothing in the same process can promise that. So code that a model file brings along runs in a spawned worker,
and everything that can happen to a process is an `Ending`. This package imports no framework.
"""

from trueport.isolation._outcome import Ending, Outcome, RemoteError
from trueport.isolation._parent import Worker

__all__ = ["Ending", "Outcome", "RemoteError", "Worker"]
