"""A traced run keeps values up to its limit, and lets go of what it does not keep."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from trueport.adapters.float64.constants import KnownNumbers
from trueport.adapters.float64.torch import tracing
from trueport.adapters.float64.torch.module import CapturedProgram, EagerModule
from trueport.adapters.float64.torch.shadow import Shadow
from trueport.core.subject import Example
from trueport.core.trace import CONSTANTS_SHARE, TracedRun
from trueport.inputs.draw import InputSet

WIDTH = 64


class Layers(nn.Module):
    """Four layers whose weights are transposed by hand, as captured programs do it."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.weights = nn.ParameterList(torch.randn(WIDTH, WIDTH) / 8 for _ in range(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Returns what the layers make."""
        for weight in self.weights:
            x = torch.tanh(x @ weight.t().contiguous())
        return x


ARGS = (torch.linspace(-1, 1, 8 * WIDTH).reshape(8, WIDTH),)
INPUTS = InputSet("example", "example", (ARGS[0].numpy(),))


def _eager(limit_bytes: int, draws: int = 2) -> TracedRun:
    return EagerModule(Layers().eval(), Example(ARGS), seed=0).trace(INPUTS, draws=draws, limit_bytes=limit_bytes)


def _captured(limit_bytes: int, draws: int = 2) -> TracedRun:
    module = Layers().eval().requires_grad_(requires_grad=False)
    program = CapturedProgram(torch.export.export(module, ARGS, strict=False), Example(ARGS))
    known = KnownNumbers([w.detach().numpy() for w in module.weights])
    return program.trace(INPUTS, known, draws=draws, seed=0, limit_bytes=limit_bytes)


def _size(run: TracedRun) -> int:
    return sum(v.nbytes for v in (*run.values.values(), *run.floors.values()))


def test_all_values_are_kept_where_there_is_room() -> None:
    for run in (_eager(2**24), _captured(2**24)):
        assert run.left_out == 0
        assert {name for node in run.nodes for name in node.outputs} == set(run.values)


def test_the_limit_holds_and_weights_get_their_part_of_it() -> None:
    limit = 100_000
    for run in (_eager(limit), _captured(limit)):
        constants = sum(v.nbytes for name, v in run.values.items() if name in run.constants)
        assert run.left_out > 0
        assert _size(run) <= limit
        assert constants <= limit * CONSTANTS_SHARE
        assert len(run.values) > len(run.constants & set(run.values))


def test_without_draws_there_are_no_floors() -> None:
    assert not _eager(2**24, draws=0).floors
    assert not _captured(2**24, draws=0).floors


def test_a_kept_value_is_not_changed_by_what_follows() -> None:
    class InPlace(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = x * 2
            y.add_(1)
            return y

    run = EagerModule(InPlace(), Example(ARGS), seed=0).trace(INPUTS, draws=2, limit_bytes=2**20)
    first, second = (run.values[node.outputs[0]] for node in run.nodes)
    assert np.array_equal(first + 1, second)


@pytest.mark.parametrize("traced", [_eager, _captured])
def test_noisy_companions_are_let_go_while_the_run_goes_on(
    traced: Callable[[int], TracedRun], monkeypatch: pytest.MonkeyPatch
) -> None:
    alive: list[int] = []
    plain = tracing._Values.add

    def add(self: Any, name: str, shadow: Shadow, *, constant: bool) -> None:
        alive.append(sum(type(o) is Shadow and o.noisy is not None for o in gc.get_objects()))
        plain(self, name, shadow, constant=constant)

    monkeypatch.setattr(tracing._Values, "add", add)
    run = traced(2**24)
    assert sum(name in run.floors for name in run.values) >= 8
    assert max(alive) <= 5
