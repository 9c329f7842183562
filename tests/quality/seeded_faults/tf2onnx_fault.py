"""What a fault planted in tf2onnx is, and how functions of a package that is not imported yet are replaced."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from tests.quality.seeded_faults.fault import ACTIONS, DEADLY, Symptom, acting_first, replaced

Wrap = Callable[[Callable[..., Any]], Callable[..., Any]]


@dataclass(frozen=True)
class TensorFlowFault:
    """A fault in one stage of tf2onnx, with a model that meets it; `plant()` is active until its context ends.

    `checkpoint` names the first wrong checkpoint where a stage has several; `ends_process` says that the fault kills
    or hangs whoever meets it.
    """

    name: str
    stage: str
    symptom: Symptom
    plant: Callable[[], AbstractContextManager[None]]
    build: Callable[[], Any]
    note: str
    checkpoint: str = ""
    ends_process: bool = False


@contextmanager
def replacing(module: str, path: str, wrap: Wrap) -> Iterator[None]:
    """Replaces a function, a method as `Class.method`, or the value at a key of a dictionary as `names[key]`."""
    owner: Any = import_module(module)
    holder, _, name = path.rpartition(".")
    for part in filter(None, holder.split(".")):
        owner = getattr(owner, part)
    if name.endswith("]"):
        table, _, key = name[:-1].partition("[")
        entries = getattr(owner, table)
        with replaced(owner, table, lambda _: {**entries, key: wrap(entries[key])}):
            yield
        return
    with replaced(owner, name, wrap):
        yield


def returning(change: Callable[[Any], Any]) -> Wrap:
    """A wrapper that changes what a function returns; a change that returns nothing was made in place."""

    def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            result = original(*args, **kwargs)
            changed = change(result)
            return result if changed is None else changed

        return call

    return wrap


def acting(stage: str, action: str, module: str, path: str, build: Callable[[], Any], note: str) -> TensorFlowFault:
    """A function that raises, exits, hangs or crashes before it does anything."""
    return TensorFlowFault(
        f"{stage}-{path.rpartition('.')[2].strip('_').replace('_', '-').lower()}-{action}",
        stage,
        "crash",
        lambda: replacing(module, path, acting_first(ACTIONS[action])),
        build,
        note,
        ends_process=action in DEADLY,
    )
