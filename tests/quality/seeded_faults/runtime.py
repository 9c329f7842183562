"""Faults of the target runtime: sessions that compute something else, refuse, or take the process with them."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import onnxruntime as ort

from tests.quality.seeded_faults.fault import (
    ACTIONS,
    DEADLY,
    DYNAMO,
    RUNTIME,
    SCRIPT,
    Converter,
    SeededFault,
    acting_first,
    replaced,
)
from tests.quality.seeded_faults.subjects import NETWORK, of, two_outputs, with_linear

Outputs = list[Any]


@contextmanager
def changing_outputs(change: Callable[[Outputs], Outputs]) -> Iterator[None]:
    """Plants a change of what every session returns."""

    def wrap(original: Callable[..., Outputs]) -> Callable[..., Outputs]:
        def run(self: ort.InferenceSession, *args: Any, **kwargs: Any) -> Outputs:
            return change([np.array(value) for value in original(self, *args, **kwargs)])

        return run

    with replaced(ort.InferenceSession, "run", wrap):
        yield


@contextmanager
def wrong_when_optimized() -> Iterator[None]:
    """Plants a wrong kernel that only an optimized session uses."""

    def wrap(original: Callable[..., Outputs]) -> Callable[..., Outputs]:
        def run(self: ort.InferenceSession, *args: Any, **kwargs: Any) -> Outputs:
            outputs = original(self, *args, **kwargs)
            level = self.get_session_options().graph_optimization_level
            return outputs if level == ort.GraphOptimizationLevel.ORT_DISABLE_ALL else scale(outputs)

        return run

    with replaced(ort.InferenceSession, "run", wrap):
        yield


@contextmanager
def _stale_results() -> Iterator[None]:
    """Plants sessions that give the first result again whenever shapes allow it."""

    def wrap(original: Callable[..., Outputs]) -> Callable[..., Outputs]:
        def run(self: ort.InferenceSession, *args: Any, **kwargs: Any) -> Outputs:
            outputs = original(self, *args, **kwargs)
            first: Outputs = self.__dict__.setdefault("_first_outputs", outputs)
            same_shapes = [np.shape(value) for value in first] == [np.shape(value) for value in outputs]
            return first if same_shapes else outputs

        return run

    with replaced(ort.InferenceSession, "run", wrap):
        yield


def scale(outputs: Outputs) -> Outputs:
    return [outputs[0] * np.float32(1.001), *outputs[1:]]


def one_nan(outputs: Outputs) -> Outputs:
    outputs[0].reshape(-1)[3] = np.nan
    return outputs


def transpose(outputs: Outputs) -> Outputs:
    return [np.swapaxes(outputs[0], -1, -2), *outputs[1:]]


def widen(outputs: Outputs) -> Outputs:
    return [outputs[0].astype(np.float64), *outputs[1:]]


def _broadcast(outputs: Outputs) -> Outputs:
    return [np.broadcast_to(outputs[0], (4, *outputs[0].shape)), *outputs[1:]]


def drop_last(outputs: Outputs) -> Outputs:
    return outputs[:-1]


def zero_last_row(outputs: Outputs) -> Outputs:
    outputs[0][-1] = 0
    return outputs


def _for(converter: Converter) -> tuple[SeededFault, ...]:
    prefix = "dynamo" if converter == DYNAMO else "script"

    def wrong(name: str, plant: Any, build: Any, note: str) -> SeededFault:
        return SeededFault(f"{prefix}-runtime-{name}", converter, RUNTIME, "wrong-model", plant, build, note)

    def changed(change: Callable[[Outputs], Outputs]) -> Any:
        return partial(changing_outputs, change)

    square = of(lambda x: x.cumsum(-1), (8, 8))
    return (
        wrong("kernel-scaled", changed(scale), NETWORK, "The first output is a thousandth too large"),
        wrong("one-nan", changed(one_nan), NETWORK, "NaN at one element: verify=True passes it"),
        wrong("transposed", changed(transpose), square, "A square output is transposed"),
        wrong("wider-type", changed(widen), NETWORK, "The output is float64"),
        wrong("broadcast-shape", changed(_broadcast), of(lambda x: x.sum(0), (4, 3)), "(4, 3) for (3,)"),
        wrong("missing-output", changed(drop_last), with_linear(two_outputs, (4, 8)), "The last output is missing"),
        wrong("last-row-zero", changed(zero_last_row), NETWORK, "The last row of the first output is zero"),
        wrong("optimized-kernel", wrong_when_optimized, NETWORK, "Wrong unless all optimizations are off"),
        wrong("stale-result", _stale_results, NETWORK, "A session's second run returns the first one's result"),
        *(
            SeededFault(
                f"{prefix}-runtime-{when}-{action}",
                converter,
                RUNTIME,
                "crash",
                partial(replaced, ort.InferenceSession, method, acting_first(ACTIONS[action])),
                NETWORK,
                f"{note} the model {action}",
                ends_process=action in DEADLY,
            )
            for when, method, note in (
                ("session", "__init__", "Loading the model"),
                ("run", "run", "Running the model"),
            )
            for action in ACTIONS
        ),
    )


FAULTS = (*_for(DYNAMO), *_for(SCRIPT))
