"""What a seeded fault is, and the two ways in which one is planted: replaced attributes and deadly actions."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, Literal, NoReturn

import torch
from torch import nn

Subject = tuple[nn.Module, tuple[Any, ...]]
Plant = Callable[[], AbstractContextManager[None]]
Converter = Literal["torch-dynamo", "torch-script"]
Symptom = Literal["wrong-model", "crash"]

DYNAMO: Converter = "torch-dynamo"
SCRIPT: Converter = "torch-script"

LOAD_MODEL = "load-model"
NODE_CONVERSION = "node-conversion"
OPTIMIZATION = "optimization"
EXPORT = "export"
VALIDATION = "validation"
RUNTIME = "runtime"

UNTIL_KILLED_S = 1e6


class PlantedError(RuntimeError):
    """Raised by a planted fault."""


@dataclass(frozen=True)
class SeededFault:
    """A fault in one stage of one converter, with a model that meets it.

    `plant()` is active until its context ends. `build(seed)` gives the module in evaluation mode and its inputs; it may
    be called before or after planting. `ends_process` says that the fault kills or hangs whoever meets it.
    """

    name: str
    converter: Converter
    stage: str
    symptom: Symptom
    plant: Plant
    build: Callable[[int], Subject]
    note: str
    ends_process: bool = False


def seeded(builder: Callable[[], Subject]) -> Callable[[int], Subject]:
    """Gives a builder of subjects its own seeded random state, and its module evaluation mode."""

    def build(seed: int) -> Subject:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            module, args = builder()
            return module.eval(), args

    return build


def nothing() -> AbstractContextManager[None]:
    """Plants nothing: the fault is in the model itself."""
    return nullcontext()


@contextmanager
def replaced(owner: Any, name: str, wrap: Callable[[Callable[..., Any]], Callable[..., Any]]) -> Iterator[None]:
    """Replaces `owner.name` by `wrap(owner.name)` until the end of the context."""
    original = getattr(owner, name)
    setattr(owner, name, wrap(original))
    try:
        yield
    finally:
        setattr(owner, name, original)


def raise_error() -> NoReturn:
    """Fails as a bug in Python code does."""
    raise PlantedError("a planted fault")


def exit_process() -> NoReturn:
    """Ends the process without any exception."""
    os._exit(7)


def hang() -> None:
    """Never returns."""
    time.sleep(UNTIL_KILLED_S)


def segfault() -> None:
    """Ends the process as a bug in native code does."""
    os.kill(os.getpid(), signal.SIGSEGV)


ACTIONS: dict[str, Callable[[], None]] = {
    "raises": raise_error,
    "exits": exit_process,
    "hangs": hang,
    "segfaults": segfault,
}
DEADLY = frozenset({"exits", "hangs", "segfaults"})


def acting_first(action: Callable[[], None]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A wrapper that runs `action` before the function it wraps."""

    def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            action()
            return original(*args, **kwargs)

        return call

    return wrap
