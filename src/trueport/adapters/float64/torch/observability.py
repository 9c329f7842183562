"""Which operators of the source no output shows: a relative error of 1e-3 in their result would stay unseen.

A zero-initialized head, a saturated gate, a mask: what stands before them is not tested by any output, however many
inputs agree. One backward pass through the recorded operators gives the effect of every one of them on all outputs.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from trueport.adapters.float64.torch.shadow import Shadow
from trueport.oracle.fingerprint import Fingerprint

Array = NDArray[Any]

PERTURBATION = 1e-3
"""The relative error that must show somewhere."""
RECORD_LIMIT_BYTES = 256 * 2**20
"""Up to so much is recorded; the operators of larger models are not examined, and the result says so."""

_PACKAGES = (str(Path(torch.__file__).parent), str(Path(__file__).parents[3]))
_TRANSPARENT = frozenset({"detach", "lift_fresh", "alias"})


@dataclass(frozen=True)
class Unseen:
    """An operator that no output shows: place in the run, name, line in the model, what its result looks like."""

    number: int
    operator: str
    source: str
    fingerprint: Fingerprint


@dataclass(eq=False)
class Entry:
    """One recorded operator; `frozen` holds its integer arguments as they were, since they may be overwritten later."""

    call: Callable[[dict[int, Tensor]], Any]
    operator: str
    name: str
    source: str
    tensors: list[Tensor]
    shadows: list[Shadow]
    results: list[Shadow]
    constant: bool
    exact: bool
    frozen: dict[int, Tensor]


class Recorder:
    """Keeps the operators of one tape run, up to a limit of memory.

    Attributes:
        entries: in order.
        complete: False once the limit was exceeded or something cannot be replayed.
        everything: whether operators on integers are wanted too, which compute the same here as in their own type.
    """

    everything = False

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.complete = True
        self._size_bytes = 0

    def add(self, entry: Entry) -> None:
        """Records an operator."""
        if not self.complete:
            return
        self._size_bytes += sum(s.main.numel() * 12 for s in entry.results)
        if self._size_bytes > RECORD_LIMIT_BYTES:
            self.complete = False
            self.entries.clear()
            return
        self.entries.append(entry)


def source_line() -> str:
    """Returns `file.py:LINE` of the innermost frame that belongs neither to torch nor to trueport."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        path = frame.f_code.co_filename
        if not path.startswith(_PACKAGES) and not path.startswith("<"):
            return f"{Path(path).name}:{frame.f_lineno}"
        frame = frame.f_back
    return ""


def unseen_operators(
    recorder: Recorder, outputs: Sequence[Shadow], floors: Sequence[Array], threshold: float
) -> list[Unseen] | None:
    """Returns the operators whose perturbation no output shows, or None where this could not be determined.

    Args:
        recorder: of a run of the source.
        outputs: companions of the floating-point outputs.
        floors: noise of the float64 evaluation at each output.
        threshold: the score from which a difference counts.
    """
    if not recorder.complete or not outputs:
        return None
    try:
        values = _replay(recorder)
        gradients = _sensitivities(recorder, values, outputs, floors, threshold)
    except Exception:  # noqa: BLE001 - an operator without derivative leaves the question open
        return None
    # The same operator at the same line (another step of a loop) is converted by the same rule.
    seen_elsewhere = {(entry.operator, entry.source) for entry, _, seen in gradients if seen}
    return [
        Unseen(recorder.entries.index(entry), entry.operator, entry.source, Fingerprint.of(shadow.main.numpy()))
        for entry, shadow, seen in gradients
        if not seen
        and (entry.operator, entry.source) not in seen_elsewhere
        and not entry.constant
        and shadow.main.numel()
        and _tells(entry, shadow.main)
    ]


def _tells(entry: Entry, main: Tensor) -> bool:
    """Whether the operator computes something that could be wrong; views and selections only pass values on."""
    return not entry.exact and bool((main != 0).any())


def _replay(recorder: Recorder) -> dict[int, Tensor]:
    values: dict[int, Tensor] = {}
    with torch.enable_grad():
        for entry in recorder.entries:
            for shadow in entry.shadows:
                if id(shadow) not in values:
                    leaf = shadow.main.detach().clone()
                    differentiable = leaf.is_floating_point() and not shadow.constant
                    values[id(shadow)] = leaf.requires_grad_() * 1.0 if differentiable else leaf
            if entry.name in _TRANSPARENT:
                values[id(entry.results[0])] = values[id(entry.shadows[0])]
                continue
            table = {id(t): values[id(s)] for t, s in zip(entry.tensors, entry.shadows, strict=True)} | entry.frozen
            result = entry.call(table)
            found = [result] if isinstance(result, Tensor) else [t for t in result if isinstance(t, Tensor)]
            for shadow, tensor in zip(entry.results, found, strict=True):
                values[id(shadow)] = tensor
    return values


def _sensitivities(
    recorder: Recorder,
    values: dict[int, Tensor],
    outputs: Sequence[Shadow],
    floors: Sequence[Array],
    threshold: float,
) -> list[tuple[Entry, Shadow, bool]]:
    """Returns for each operator that reaches an output whether its perturbation shows there."""
    rng = np.random.default_rng(0)
    loss = torch.zeros((), dtype=torch.float64)
    for shadow, floor in zip(outputs, floors, strict=True):
        value = values.get(id(shadow))
        if value is None or not value.requires_grad:
            continue
        least = np.maximum(floor, np.abs(shadow.main.numpy()) * 2.0**-50 + 1e-300) * threshold
        weight = torch.from_numpy(np.asarray(rng.standard_normal(value.shape) / least))
        with torch.enable_grad():
            loss = loss + (torch.nan_to_num(value, 0.0, 0.0, 0.0) * weight).sum()
    nodes = [(e, s, values[id(s)]) for e in recorder.entries for s in e.results[:1] if values[id(s)].requires_grad]
    if not nodes or not loss.requires_grad:
        return []
    gradients = torch.autograd.grad(loss, [v for _, _, v in nodes], allow_unused=True)
    found = []
    for (entry, shadow, value), gradient in zip(nodes, gradients, strict=True):
        if gradient is None:
            continue  # no path to an output: dead code, which a converter may drop
        effect = torch.nan_to_num(gradient * value.detach() * PERTURBATION, 0.0, torch.inf, torch.inf)
        found.append((entry, shadow, bool(effect.square().sum().sqrt() > 1.0)))
    return found
