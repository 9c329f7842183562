"""Summation noise of reductions and contractions: the sum of squared terms and the number of terms, per operator.

Each rule evaluates the operator on squared arguments, which gives the sum of the squared terms of every element.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor


@dataclass(frozen=True)
class Contraction:
    """One evaluated operator: its first result and its arguments, in float64."""

    result: Tensor
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    def argument(self, position: int, name: str, default: Any = None) -> Any:
        """Returns an argument that may have been given by position or by name."""
        return self.args[position] if len(self.args) > position else self.kwargs.get(name, default)


Terms = tuple[Tensor, int | Tensor]
"""(sum of the squared terms of every element, number of terms, the same everywhere or per element)."""


def _square(x: Tensor) -> Tensor:
    return x.abs().square()


def _matmul(c: Contraction) -> Terms:
    a, b = c.args[:2]
    return torch.matmul(_square(a), _square(b)), a.shape[-1]


def _addmm(c: Contraction) -> Terms:
    bias, a, b = c.args[:3]
    return torch.matmul(_square(a), _square(b)) + _square(bias), a.shape[-1] + 1


def _linear(c: Contraction) -> Terms:
    x, weight, bias = c.args[0], c.args[1], c.argument(2, "bias")
    squares = torch.nn.functional.linear(_square(x), _square(weight))
    return (squares if bias is None else squares + _square(bias)), x.shape[-1] + 1


def _convolution(c: Contraction) -> Terms:
    x, weight, bias, *rest = c.args
    squared_bias = None if bias is None else _square(bias)
    squares = torch.ops.aten.convolution.default(_square(x), _square(weight), squared_bias, *rest[:6])
    return squares, math.prod(weight.shape[1:]) + 1


def _count(x: Tensor, dim: Any) -> int:
    """Returns how many elements are reduced into one; all of them where no dimension is given."""
    if dim is None or (isinstance(dim, list | tuple) and not dim):
        return int(x.numel())
    dims = dim if isinstance(dim, list | tuple) else [dim]
    return math.prod(int(x.shape[d]) for d in dims) if x.dim() else 1


def _sum(c: Contraction) -> Terms:
    x, dim, keepdim = c.args[0], c.argument(1, "dim"), c.argument(2, "keepdim", False)
    squares = _square(x)
    return (squares.sum() if dim is None else squares.sum(dim, keepdim)), _count(x, dim)


def _mean(c: Contraction) -> Terms:
    squares, terms = _sum(c)
    return squares / max(terms, 1) ** 2, terms


def _cumsum(c: Contraction) -> Terms:
    x, dim = c.args[:2]
    return _square(x).cumsum(dim), torch.ones_like(x).cumsum(dim)


def _even(c: Contraction, dim: Any) -> Terms:
    """Positive terms of about equal size: norms, products, log-sum-exp, variances, softmax."""
    terms = _count(c.args[0], dim)
    return _square(c.result) / max(terms, 1), terms


def _second_is_dim(c: Contraction) -> Terms:
    dim = c.argument(1, "dim")
    return _even(c, None if isinstance(dim, bool | float | str) else dim)


def _vector_norm(c: Contraction) -> Terms:
    return _even(c, c.argument(2, "dim"))


def _whole(c: Contraction) -> Terms:
    return _even(c, None)


def _slices(c: Contraction) -> Terms:
    """Weight normalization: each slice is divided by the norm over all that is in it."""
    v, dim = c.args[0], c.argument(2, "dim", 0)
    terms = int(v.numel()) // max(int(v.shape[dim]), 1)
    return _square(c.result) / max(terms, 1), terms


def _attention(c: Contraction) -> Terms:
    _, key, value = c.args[:3]
    terms = key.shape[-2]
    largest = _square(value).amax(dim=-2, keepdim=True)
    if largest.dim() > 2 and largest.shape[-3] != c.result.shape[-3]:
        # Grouped queries share the heads of keys and values.
        largest = largest.repeat_interleave(c.result.shape[-3] // largest.shape[-3], dim=-3)
    return (largest / max(terms, 1)).expand(c.result.shape), terms


def _pool(c: Contraction) -> Terms:
    x = c.args[0]
    return _square(c.result), max(1, math.prod(x.shape[2:]) // max(1, math.prod(c.result.shape[2:])))


RULES: dict[str, Callable[[Contraction], Terms]] = {
    "mm": _matmul,
    "bmm": _matmul,
    "mv": _matmul,
    "dot": _matmul,
    "matmul": _matmul,
    "addmm": _addmm,
    "baddbmm": _addmm,
    "linear": _linear,
    "convolution": _convolution,
    "sum": _sum,
    "nansum": _sum,
    "mean": _mean,
    "cumsum": _cumsum,
    "logsumexp": _second_is_dim,
    "cumprod": _second_is_dim,
    "prod": _second_is_dim,
    "std": _second_is_dim,
    "var": _second_is_dim,
    "_softmax": _second_is_dim,
    "_log_softmax": _second_is_dim,
    "linalg_vector_norm": _vector_norm,
    "norm": _whole,
    "_weight_norm_interface": _slices,
    "_scaled_dot_product_flash_attention_for_cpu": _attention,
    "_adaptive_avg_pool2d": _pool,
    "_adaptive_avg_pool3d": _pool,
    "adaptive_avg_pool1d": _pool,
    "avg_pool2d": _pool,
    "avg_pool3d": _pool,
}
"""By operator name. `addmm` with other factors than one is rounded the same way up to those factors."""


def summation_terms(name: str, result: Tensor, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Terms | None:
    """Returns the terms behind an operator's first result, or None where nothing is summed."""
    rule = RULES.get(name)
    if rule is None or not result.is_floating_point():
        return None
    squares, terms = rule(Contraction(result, args, kwargs))
    return (squares, terms) if squares.shape == result.shape else None
