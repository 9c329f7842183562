"""Rounding noise in an ONNX graph: what the file's own operators may lose, in any type.

A file may decompose into ten operators what the source computes in one; its rounding is that of the ten. The size of an
operator's noise is a unit in the last place, the error of another order of summation, or, for operators that do much at
once, what a few units of noise in their inputs do to their result, whichever is largest.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from trueport.adapters.float64.onnx.dtypes import Array
from trueport.adapters.float64.onnx.plan import Step
from trueport.oracle.noise import draw, summation_noise
from trueport.oracle.units import FLOAT_TYPES


@dataclass(frozen=True)
class Budget:
    """What a runtime's kernel may be off by: `places` units in the last place, and an absolute error in units of u."""

    places: float = 1.0
    absolute: float = 0.0


NO_BUDGETS: Mapping[str, Budget] = {}

# Their inner sums and differences amplify the rounding of their inputs.
_COMPOSITE = frozenset(
    {
        "LayerNormalization", "GroupNormalization", "InstanceNormalization", "BatchNormalization", "RMSNormalization",
        "LpNormalization", "MeanVarianceNormalization", "SkipLayerNormalization", "LRN", "LSTM", "GRU", "RNN", "Det",
        "Einsum", "Resize", "GridSample", "Gelu", "BiasGelu", "FastGelu", "QuickGelu", "Softplus", "Mish",
    }
)  # fmt: skip
_COMPOSITE_PLACES = 8.0
# Evaluated on squared operands they give the sum of the squared terms.
_CONTRACTIONS = frozenset(
    ["MatMul", "Gemm", "Conv", "ConvTranspose", "FusedMatMul", "FusedConv", "ReduceSum", "ReduceMean", "CumSum"]
)
_POOLS = frozenset(["AveragePool", "GlobalAveragePool"])


class Rounding:
    """Perturbs outputs; pass it as `perturb` of a run.

    Args:
        rng: source of the noise.
        coherent: one sign for each tensor instead of independent noise.
        wide: noise of a float64 evaluation instead of the declared type's.
        budgets: what a runtime's kernels may be off by, per operator.
    """

    def __init__(
        self,
        rng: np.random.Generator,
        *,
        coherent: bool,
        wide: bool,
        budgets: Mapping[str, Budget] = NO_BUDGETS,
    ) -> None:
        self._rng = rng
        self._coherent = coherent
        self._wide = wide
        self._budgets = budgets

    def __call__(self, step: Step, arguments: list[Any], index: int, value: Array) -> Array:
        """Returns the value with noise; what is not finite stays as it is."""
        if not isinstance(value, np.ndarray) or value.dtype != np.float64 or value.size == 0:
            return value
        kind = FLOAT_TYPES[step.call.output_types[index]]
        operator = step.call.node.op_type
        unit = FLOAT_TYPES["float64"].unit_roundoff if self._wide else kind.unit_roundoff
        accumulator = min(unit, FLOAT_TYPES["float32"].unit_roundoff)
        budget = self._budgets.get(operator, Budget())
        noise = np.abs(value) * (unit * budget.places) + budget.absolute * unit
        noise = noise + (kind.underflow if self._wide else kind.flushed)
        extra = self._summation(step, arguments, index, value, accumulator)
        if extra is not None:
            noise = np.maximum(noise, extra)
        if operator in _COMPOSITE and step.bodies is None:
            noise = np.maximum(noise, self._composite(step, arguments, index, value, unit))
        if operator in ("Softmax", "Attention", "MultiHeadAttention"):
            # exp(x - max) is as good as its argument, which is rounded; never as good as x, which a mask may make huge.
            noise = noise + np.abs(value) * unit * (_COMPOSITE_PLACES + np.abs(np.log(np.abs(value) + 1e-300)))
        if operator in ("Add", "Sub"):
            # A correctly rounded sum is off by no more than its smaller operand: a mask of -3e38 stays itself.
            noise = np.minimum(noise, np.minimum(np.abs(arguments[0]), np.abs(arguments[1])))
        noise = np.where(np.isfinite(noise) & np.isfinite(value), noise, 0.0)
        return np.asarray(value + draw(self._rng, noise, coherent=self._coherent))

    def _summation(self, step: Step, arguments: list[Any], index: int, value: Array, unit: float) -> Array | None:
        operator = step.call.node.op_type
        if index != 0 or operator not in _CONTRACTIONS | _POOLS:
            return None
        if operator in _POOLS:
            terms = max(1, arguments[0].size // max(value.size, 1))
            return summation_noise(value, np.square(value), terms, unit)
        squared = [np.square(a) if _is_float(a) else a for a in arguments]
        squares = _first(step.function(step.call, *squared))
        terms = _terms(operator, arguments, value)
        if operator == "ReduceMean":
            squares = squares / max(terms, 1)
        return summation_noise(value, squares, terms, unit)

    def _composite(self, step: Step, arguments: list[Any], index: int, value: Array, unit: float) -> Array:
        """What noise of a few units in every operand does to the result."""
        size = _COMPOSITE_PLACES * unit
        moved = [a * (1 + size * self._rng.standard_normal(a.shape)) if _is_float(a) else a for a in arguments]
        result = step.function(step.call, *moved)
        other = result[index] if isinstance(result, tuple) else result
        if not isinstance(other, np.ndarray) or other.shape != value.shape:
            return np.zeros(value.shape)
        return np.asarray(np.abs(other - value))


def _is_float(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype == np.float64


def _first(result: Any) -> Array:
    return np.asarray(result[0] if isinstance(result, tuple) else result)


def _terms(operator: str, arguments: list[Any], value: Array) -> int:
    """Returns how many terms are summed into one element."""
    first = arguments[0]
    if operator in ("Conv", "ConvTranspose", "FusedConv"):
        return int(math.prod(arguments[1].shape[1:])) + 1
    if operator in ("ReduceSum", "ReduceMean"):
        return max(1, int(first.size) // max(value.size, 1))
    if operator == "CumSum":
        return max(map(int, first.shape), default=1)
    return (int(first.shape[-1]) if first.ndim else 1) + 1


def noisy_runs(
    run: Callable[[Rounding, np.random.Generator], list[Any]],
    *,
    draws: int,
    seed: int,
    wide: bool,
    budgets: Mapping[str, Budget] = NO_BUDGETS,
) -> list[list[Any]]:
    """Returns `draws` runs, the even ones with independent and the odd ones with coherent noise."""
    results = []
    for k in range(draws):
        rng = np.random.default_rng([seed, k, int(wide)])
        results.append(run(Rounding(rng, coherent=k % 2 == 1, wide=wide, budgets=budgets), rng))
    return results
