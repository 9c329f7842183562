"""Adds each operator's rounding noise to the noisy runs, and keeps all runs inside the range of the real type."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import torch
from torch import Tensor

from trueport.adapters.float64.torch.calls import Call, dtype_name, to_numpy
from trueport.adapters.float64.torch.kernel_noise import extra_noise
from trueport.adapters.float64.torch.shadow import NARROW, Shadow
from trueport.oracle.noise import Draws, draw, local_noise, meaning_scale
from trueport.oracle.units import FLOAT_TYPES, FloatType


class Injector:
    """Draws the noise of one tape run.

    Args:
        draws: how many runs of which kind.
        rng: where the noise comes from.
    """

    def __init__(self, draws: Draws, rng: np.random.Generator) -> None:
        self._draws = draws
        self._rng = rng

    def own(
        self, call: Call, shadow: Shadow, name: str, rounded: Tensor | None, results: list[Tensor], *, first: bool
    ) -> None:
        """Injects the rounding noise of an operator at one of its results.

        Args:
            call: the operator.
            shadow: the result.
            name: its real type.
            rounded: the result in its own type on the same inputs, or None.
            results: all results in float64.
            first: whether it is the first of them.
        """
        extra = None
        if first and not call.facts.mutates:
            accumulator = FLOAT_TYPES["float32" if name in ("float16", "bfloat16") else name].unit_roundoff
            extra = extra_noise(call.facts.name, results, *call.wide_arguments(), accumulator)
        real = None
        # In double precision the companion is the operator's own result, which says nothing about its rounding.
        if rounded is not None and rounded.shape == shadow.main.shape and rounded.dtype in NARROW:
            real = to_numpy(rounded.to(shadow.main.dtype))
        noise = local_noise(
            to_numpy(shadow.main), real, name, extra, inexact=not call.facts.correctly_rounded or real is None
        )
        if first:
            noise = absorbed(call, noise)
        self.inject(shadow, torch.from_numpy(noise), name, constant=shadow.constant)

    def factory(self, shadow: Shadow, tensor: Tensor) -> None:
        """Values such as those of `linspace` may be computed anew, so they are good to a last place only."""
        if tensor.is_complex() or not self._draws.total:
            return
        whole = shadow.main == torch.round(shadow.main)
        if bool(whole.all()):
            return
        name = dtype_name(tensor.dtype)
        # A window or a ramp is computed through differences: its error is relative to its largest value.
        largest = np.full(shadow.main.shape, 4 * FLOAT_TYPES[name].unit_roundoff * float(shadow.main.abs().max()))
        noise = local_noise(shadow.main.numpy(), None, name, largest, inexact=True)
        self.inject(shadow, torch.from_numpy(noise), name, constant=True)

    def stand_in(self, shadow: Shadow, tensor: Tensor) -> None:
        """A real value stands in for a float64 one that could not be had: it carries its own rounding in both lanes."""
        if not self._draws.total:
            return
        name = dtype_name(tensor.dtype)
        noise = 8 * local_noise(shadow.main.numpy(), None, name, None, inexact=True)
        self.inject(shadow, torch.from_numpy(noise), name, constant=True)

    def inject(self, shadow: Shadow, noise: Tensor, name: str, *, constant: bool) -> None:
        """Adds this operator's noise to every noisy run, in place where the storage is shared with views."""
        if not bool(noise.any()):
            return
        if shadow.noisy is None:
            if shadow.base is None:
                shadow.noisy = [shadow.main.clone() for _ in range(self._draws.total)]
            else:
                shadow.materialize(draws=self._draws.total, others=0)
        assert shadow.noisy is not None
        size = noise.numpy()
        # Float64 evaluations of one program may differ in which intermediate numbers underflow in the real type.
        meaning = size if constant else np.maximum(size * meaning_scale(name), FLOAT_TYPES[name].underflow)
        for k, run in enumerate(shadow.noisy):
            arithmetic = k < self._draws.arithmetic
            coherent = (k if arithmetic else k - self._draws.arithmetic) % 2 == 1
            realization = torch.from_numpy(draw(self._rng, size if arithmetic else meaning, coherent=coherent))
            if run.is_complex():
                other = draw(self._rng, size if arithmetic else meaning, coherent=coherent)
                realization = torch.complex(realization, torch.from_numpy(other))
            run.add_(realization)


def absorbed(call: Call, noise: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A correctly rounded sum is off by no more than its smaller operand: a mask of -3e38 absorbs and stays itself."""
    if call.facts.name not in ("add", "sub", "rsub") or call.facts.mutates or len(call.args) < 2:
        return noise
    args, kwargs = call.wide_arguments()
    first, second = (np.abs(np.asarray(a.numpy() if isinstance(a, Tensor) else a)) for a in args[:2])
    alpha = kwargs.get("alpha", 1)
    return np.asarray(np.minimum(noise, np.minimum(first, second * abs(alpha))))


def saturate(shadow: Shadow, name: str) -> None:
    """Applies the real type's range: what rounds beyond its largest number is infinite, what rounds to zero is zero."""
    kind = FLOAT_TYPES[name]
    if shadow.main.is_complex() or shadow.main.dtype != torch.float64 or _far_inside(shadow.main, kind):
        return
    beyond = (shadow.main.abs() >= kind.overflow) & torch.isfinite(shadow.main)
    if shadow.other is None and shadow.base is None and bool(beyond.any()):
        # A kernel that holds more than the type does between two operators does not overflow there.
        shadow.other = [shadow.main.clone(), shadow.main.clone()]
    for value in itertools.chain([shadow.main], shadow.noisy or (), (shadow.other or ())[:1]):
        magnitude = value.abs()
        value.masked_fill_((value >= kind.overflow), torch.inf).masked_fill_(value <= -kind.overflow, -torch.inf)
        value.masked_fill_((magnitude <= kind.underflow) & (magnitude > 0), 0.0)


def _far_inside(main: Tensor, kind: FloatType) -> bool:
    """Whether no number is anywhere near the ends of the range, so that no noisy one can be beyond them."""
    if main.numel() == 0:
        return True
    magnitude = main.abs()
    magnitude[magnitude == 0] = 1.0
    low, high = torch.aminmax(magnitude)
    return bool(low > 1e3 * kind.underflow) and bool(high < 1e-3 * kind.overflow)
