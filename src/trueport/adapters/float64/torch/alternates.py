"""Alternates at discontinuous operators: which arguments are too near to a jump, and how they are pushed across it."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from trueport.adapters.float64.torch.calls import Call, decides
from trueport.adapters.float64.torch.jumps import ALTERNATES, prefers_large, selection_dim, shifted
from trueport.adapters.float64.torch.shadow import WIDE, Shadow
from trueport.oracle.floor import elementwise_floor
from trueport.oracle.noise import Draws
from trueport.oracle.thresholds import THRESHOLDS


def margins(call: Call, draws: Draws) -> list[Tensor | None] | None:
    """How near to a jump is too near, per argument; None where no argument has any noise and no tie matters."""
    found = False
    found_margins: list[Tensor | None] = []
    for tensor, shadow in zip(call.tensors, call.shadows, strict=True):
        if tensor.dtype not in WIDE or shadow.main.is_complex():
            found_margins.append(None)
            continue
        if shadow.noisy is None:
            found_margins.append(torch.zeros_like(shadow.main))
        else:
            runs = [run.numpy() for run in shadow.noisy[: draws.arithmetic]]
            floor = THRESHOLDS.margin * elementwise_floor(shadow.main.numpy(), runs)
            found_margins.append(torch.from_numpy(np.asarray(floor)))
            found = found or bool(floor.any())
    ties = call.facts.selects and call.facts.name not in ("argmax", "argmin")
    return found_margins if found or (ties and any(m is not None for m in found_margins)) else None


def has_ties(call: Call) -> bool:
    """Whether a selection whose order of equal elements is left open met equal elements."""
    if not call.facts.selects or call.facts.name in ("argmax", "argmin") or call.kwargs.get("stable", False):
        return False
    main = call.shadows[0].main
    dim = selection_dim(call.facts.name, call.args, call.kwargs)
    if not main.dim() or main.is_complex() or main.shape[dim] < 2:
        return False
    return bool((torch.diff(torch.sort(main, dim=dim).values, dim=dim) == 0).any())


def pushed(call: Call, values: list[Tensor], margins: list[Tensor | None], number: int) -> list[Tensor]:
    """Returns the values of alternate `number` with everything near a jump pushed across it."""
    dim = selection_dim(call.facts.name, call.args, call.kwargs)
    ties = call.facts.name not in ("argmax", "argmin") and not call.kwargs.get("stable", False)
    return [
        value
        if margin is None or margin.shape != value.shape
        else shifted(
            position,
            value,
            margin,
            number,
            dim,
            selects=call.facts.selects,
            ties=ties,
            largest=prefers_large(call.facts.name, call.args, call.kwargs),
        )
        for position, (value, margin) in enumerate(zip(values, margins, strict=True))
    ]


def adopt_decision(call: Call, shadow: Shadow, tensor: Tensor, draws: Draws) -> None:
    """Where the real run decided otherwise than float64, one alternate takes its side."""
    if not decides(call) or not draws.arithmetic or tensor.shape != shadow.main.shape:
        return
    differs = shadow.main != tensor.to(shadow.main.dtype)
    if not bool(differs.any()):
        return
    if tensor.dtype in WIDE and call.facts.name in ("remainder", "fmod", "frac", "hardshrink"):
        return
    if shadow.other is None:
        shadow.other = [shadow.main.clone() for _ in range(ALTERNATES)]
    keep = differs & (shadow.other[1] == shadow.main)
    shadow.other[1] = torch.where(keep, tensor.to(shadow.main.dtype), shadow.other[1])
