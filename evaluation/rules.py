"""What the rules of other tools say about one pair of outputs, as a distance over what each of them allows.

A ratio above 1 (for `torch.onnx verify`, 1 or above) means different. Values that are NaN or infinite on both sides are
equal here even where a tool is stricter: the rules are compared by their tolerances.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

Array = NDArray[np.float64]
LARGEST = 1e100


@dataclass(frozen=True)
class Outputs:
    """One output of the three sides on the same input.

    Attributes:
        eager: of the source as users run it.
        candidate: of the converted file in the runtime.
        wide: of the source in double precision, or None where it does not run there.
    """

    eager: torch.Tensor
    candidate: torch.Tensor
    wide: torch.Tensor | None


@dataclass(frozen=True)
class Answer:
    """What one rule says: the distance in units of what it allows, and whether it calls the outputs different."""

    ratio: float
    different: bool


def answers(outputs: Sequence[Outputs]) -> dict[str, Answer]:
    """Returns what every rule says about all outputs of one run."""
    return {name: _worst([rule(output) for output in outputs]) for name, rule in RULES.items()}


def _worst(found: Sequence[Answer]) -> Answer:
    return Answer(max(a.ratio for a in found), any(a.different for a in found))


def _allclose(output: Outputs) -> Answer:
    pair = _differences(output)
    return _above(pair, lambda distance, size: distance / (1e-5 + 1e-3 * size))


def _absolute(output: Outputs) -> Answer:
    return _above(_differences(output), lambda distance, _: distance / 1e-7)


def _polygraphy(output: Outputs) -> Answer:
    def ratio(distance: Array, size: Array) -> Array:
        relative = distance / np.where(size == 0, np.finfo(np.float64).eps, size)
        return np.minimum(distance, relative) / 1e-5

    return _above(_differences(output), ratio)


def _verify(output: Outputs) -> Answer:
    pair = _differences(output)
    answer = _above(pair, lambda distance, size: np.maximum(distance / 5e-3, distance / (size + 1e-7) / 0.1))
    return Answer(answer.ratio, answer.ratio >= 1)


def _above(pair: tuple[Array, Array] | None, rule: Callable[[Array, Array], Array]) -> Answer:
    if pair is None:
        return Answer(LARGEST, different=True)
    with np.errstate(all="ignore"):
        ratio = np.nan_to_num(rule(*pair), nan=LARGEST, posinf=LARGEST).max(initial=0.0)
    worst = min(float(ratio), LARGEST)
    return Answer(worst, worst > 1)


def _differences(output: Outputs) -> tuple[Array, Array] | None:
    """Distance and size of the expected value, element by element; None where the shapes differ."""
    expected, found = (t.detach().to(torch.float64).numpy() for t in (output.eager, output.candidate))
    if expected.shape != found.shape:
        return None
    with np.errstate(all="ignore"):
        distance = np.abs(expected - found)
    equal = (expected == found) | (np.isnan(expected) & np.isnan(found))
    return np.where(equal, 0.0, distance), np.abs(np.where(np.isfinite(expected), expected, 0.0))


def _same(output: Outputs) -> Answer:
    from torch._dynamo.utils import same

    if output.eager.shape != output.candidate.shape or output.eager.dtype != output.candidate.dtype:
        return Answer(LARGEST, different=True)
    with _no_log():
        equal = same(output.eager, output.candidate, output.wide, equal_nan=True)
    return Answer(_same_ratio(output), not equal)


def _same_ratio(output: Outputs) -> float:
    """The smaller of its two tests: `allclose` at 1e-4, and the error against double over that of the eager run."""
    close = _above(_differences(output), lambda distance, size: distance / (1e-4 + 1e-4 * size)).ratio
    wide = output.wide
    if wide is None or wide.dtype != torch.float64 or not output.eager.is_floating_point():
        return close
    candidate, eager = (_rmse(wide, side) for side in (output.candidate, output.eager))
    narrow = wide.numel() < 1000 or (wide.ndim == 4 and wide.shape[-2:] == (1, 1))
    half = output.eager.dtype in (torch.float16, torch.bfloat16)
    allowed = (3.0 if narrow or half else 2.0) * eager + 1e-5
    ratio = candidate / allowed
    return min(close, LARGEST if np.isnan(ratio) else ratio)


def _rmse(wide: torch.Tensor, side: torch.Tensor) -> float:
    return float(torch.sqrt(torch.mean(torch.square(wide - side.double()))))


@contextmanager
def _no_log() -> Iterator[None]:
    previous = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(previous)


RULES: dict[str, Callable[[Outputs], Answer]] = {
    "allclose(1e-3, 1e-5)": _allclose,
    "1e-7 absolute": _absolute,
    "torch.onnx verify (5e-3, 0.1)": _verify,
    "Polygraphy (1e-5, 1e-5)": _polygraphy,
    "torch._dynamo.utils.same": _same,
}
