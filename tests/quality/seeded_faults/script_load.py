"""Faults of the TorchScript tracer: functions that record something else than they compute."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch.nn import functional

from tests.quality.oracle_cases.fork import Fork
from tests.quality.seeded_faults.fault import (
    ACTIONS,
    DEADLY,
    LOAD_MODEL,
    SCRIPT,
    SeededFault,
    Subject,
    nothing,
    replaced,
    seeded,
)
from tests.quality.seeded_faults.subjects import NETWORK, of

Function = Callable[..., torch.Tensor]


def _tracing(name: str, change: Callable[[Function], Function]) -> Callable[[], Any]:
    """Plants `change(function)` for `torch.nn.functional.<name>` while a trace is recorded."""

    def wrap(original: Function) -> Function:
        recorded = change(original)

        def call(*args: Any, **kwargs: Any) -> torch.Tensor:
            return (recorded if torch.jit.is_tracing() else original)(*args, **kwargs)

        return call

    return partial(replaced, functional, name, wrap)


def _acting(action: str) -> Callable[[Function], Function]:
    def change(original: Function) -> Function:
        def call(*args: Any, **kwargs: Any) -> torch.Tensor:
            ACTIONS[action]()
            return original(*args, **kwargs)

        return call

    return change


def _larger_eps(original: Function) -> Function:
    return lambda x, shape, weight=None, bias=None, eps=1e-5: original(x, shape, weight, bias, eps * 10)


def _branch() -> Subject:
    def wrong(x: torch.Tensor) -> torch.Tensor:
        return x * torch.sigmoid(1.702 * x)

    return Fork(lambda x: x * torch.sigmoid(1.7 * x), wrong), (torch.randn(4, 8),)


def _shape_branch() -> Subject:
    return Fork(lambda x: x.sum(0), lambda x: x.sum(0).expand(4, 3) + 0), (torch.randn(4, 3),)


def _frozen_scale() -> Subject:
    """A number read from the example: the trace keeps it, and is wrong for every other input."""

    def scale(x: torch.Tensor) -> torch.Tensor:
        return x * float(x.abs().max())

    return Fork(lambda x: x * x.abs().max(), scale), (torch.randn(4, 8),)


def _wrong(name: str, plant: Any, build: Any, note: str) -> SeededFault:
    return SeededFault(f"script-load-{name}", SCRIPT, LOAD_MODEL, "wrong-model", plant, build, note)


FAULTS = (
    _wrong("trace-only-branch", nothing, seeded(_branch), "Another constant only while tracing"),
    _wrong("branch-of-broadcastable-shape", nothing, seeded(_shape_branch), "(4, 3) for (3,) only while tracing"),
    _wrong("frozen-value", nothing, seeded(_frozen_scale), "The example's maximum becomes a constant: right for it"),
    _wrong(
        "gelu-by-tanh",
        _tracing("gelu", lambda original: lambda x, approximate="none": original(x, approximate="tanh")),
        NETWORK,
        "GELU is recorded with its approximation",
    ),
    _wrong("layer-norm-eps", _tracing("layer_norm", _larger_eps), NETWORK, "eps is recorded ten times too large"),
    _wrong(
        "softmax-axis",
        _tracing("softmax", lambda original: lambda x, dim: original(x, 0)),
        of(lambda x: functional.softmax(x, -1), (8, 8)),
        "Softmax is recorded for the first axis",
    ),
    _wrong(
        "padding-mode",
        _tracing("pad", lambda original: lambda x, pad, mode="constant": original(x, pad, mode="replicate")),
        of(lambda x: functional.pad(x, (1, 1, 1, 1), mode="reflect"), (1, 1, 6, 6)),
        "Every padding is recorded as replication",
    ),
    *(
        SeededFault(
            f"script-load-{action}",
            SCRIPT,
            LOAD_MODEL,
            "crash",
            _tracing("gelu", _acting(action)),
            NETWORK,
            f"Recording GELU {action}",
            ends_process=action in DEADLY,
        )
        for action in ACTIONS
    ),
)
