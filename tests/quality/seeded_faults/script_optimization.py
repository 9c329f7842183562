"""Faults of the TorchScript exporter's constant folding, the part of its optimization that can be switched off."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import nn

from tests.quality.seeded_faults.fault import (
    ACTIONS,
    DEADLY,
    OPTIMIZATION,
    SCRIPT,
    SeededFault,
    Subject,
    acting_first,
    replaced,
    seeded,
)
from tests.quality.seeded_faults.subjects import with_linear

Parameters = dict[str, torch.Tensor]
FOLD = "_jit_pass_onnx_constant_fold"
FUSE = "_jit_pass_onnx_eval_peephole"


def _changing(owner: str, change: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[], Any]:
    """Plants a change of every tensor that the native pass `owner` makes."""

    def wrap(original: Callable[..., Parameters]) -> Callable[..., Parameters]:
        def run(graph: Any, parameters: Parameters, *args: Any) -> Parameters:
            before = dict(parameters)
            after: Parameters = original(graph, parameters, *args)
            for name, value in after.items():
                if before.get(name) is not value and value.is_floating_point():
                    after[name] = change(value).contiguous()
            return after

        return run

    return partial(replaced, torch._C, owner, wrap)


def _flip_one_sign(value: torch.Tensor) -> torch.Tensor:
    changed = value.clone(memory_format=torch.contiguous_format)
    index = changed.abs().argmax()
    changed.view(-1)[index] *= -1
    return changed


def _drop_small(value: torch.Tensor) -> torch.Tensor:
    return torch.where(value.abs() < 0.1, 0.0, value)


def _fused() -> Subject:
    norm = nn.BatchNorm2d(8)
    norm.running_mean = torch.randn(8)
    norm.running_var = torch.rand(8) + 0.5
    return nn.Sequential(nn.Conv2d(3, 8, 3), norm), (torch.randn(1, 3, 8, 8),)


def _wrong(name: str, owner: str, change: Callable[[torch.Tensor], torch.Tensor], build: Any, note: str) -> SeededFault:
    plant = _changing(owner, change)
    return SeededFault(f"script-optimization-{name}", SCRIPT, OPTIMIZATION, "wrong-model", plant, build, note)


_FOLDED = with_linear(lambda f, x: torch.tanh(x @ f.weight.t()), (4, 8))

FAULTS = (
    _wrong("folded-scaled", FOLD, lambda value: value * 1.001, _FOLDED, "Folded constants are a thousandth too large"),
    _wrong("folded-transposed", FOLD, lambda value: value.t(), _FOLDED, "A folded square constant is transposed"),
    _wrong("folded-in-float16", FOLD, lambda value: value.half().float(), _FOLDED, "Folding goes through float16"),
    _wrong("folded-sign", FOLD, _flip_one_sign, _FOLDED, "One folded number has the wrong sign"),
    _wrong("folded-small-dropped", FOLD, _drop_small, _FOLDED, "Small numbers become zero in folding"),
    _wrong("fused-scaled", FUSE, lambda value: value * 1.001, seeded(_fused), "Batch norm is fused wrongly"),
    *(
        SeededFault(
            f"script-optimization-{action}",
            SCRIPT,
            OPTIMIZATION,
            "crash",
            partial(replaced, torch._C, FOLD, acting_first(ACTIONS[action])),
            _FOLDED,
            f"Constant folding {action}",
            ends_process=action in DEADLY,
        )
        for action in ACTIONS
    ),
)
