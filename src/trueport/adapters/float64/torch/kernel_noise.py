"""How large one operator's rounding error may be, beyond what it happens to be on these inputs.

The measured error of one kernel on one input is one sample. Other correct kernels add in another order, subtract the
mean before or after squaring, or evaluate a tail through a difference; these rules bound what such kernels may do.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from trueport.adapters.float64.torch.contractions import summation_terms
from trueport.oracle.noise import summation_noise

Array = NDArray[Any]
Arguments = tuple[Any, ...]


def extra_noise(
    name: str, results: list[Tensor], args: Arguments, kwargs: dict[str, Any], unit_roundoff: float
) -> Array | None:
    """Returns the possible error of the first result of an operator, or None where the measured one tells all.

    Args:
        name: the operator.
        results: its results in float64.
        args: its positional arguments in float64.
        kwargs: its keyword arguments.
        unit_roundoff: of the type in which it accumulates.
    """
    rule = _RULES.get(name)
    if rule is not None:
        return rule(results, args, kwargs, unit_roundoff)
    terms = summation_terms(name, results[0], args, kwargs)
    if terms is None:
        return None
    count = terms[1].numpy() if isinstance(terms[1], Tensor) else terms[1]
    return summation_noise(results[0].numpy(), terms[0].numpy(), count, unit_roundoff)


def _mean_noise(x: Tensor, dims: list[int], unit: float) -> tuple[Tensor, Tensor]:
    """Returns the mean over the dimensions, kept, and the possible error of it."""
    count = math.prod(x.shape[d] for d in dims)
    mean = x.mean(dims, keepdim=True)
    squares = x.square().sum(dims, keepdim=True) / max(count, 1) ** 2
    noise = torch.from_numpy(np.asarray(summation_noise(mean.numpy(), squares.numpy(), count, unit)))
    return mean, noise + unit * mean.abs()


def _variance_noise(variance: Tensor, mean_noise: Tensor) -> Tensor:
    """The error that an error of the mean leaves in the variance: Welford's recurrence keeps it to first order."""
    return mean_noise.square() + mean_noise * variance.clamp(min=0).sqrt()


def _variance(results: list[Tensor], args: Arguments, kwargs: dict[str, Any], unit: float) -> Array:
    x = args[0]
    dim = args[1] if len(args) > 1 and not isinstance(args[1], bool) else kwargs.get("dim")
    dims = list(range(x.dim())) if not dim and dim != 0 else [dim] if isinstance(dim, int) else list(dim)
    _, noise = _mean_noise(x, dims, unit)
    return np.asarray(_variance_noise(results[0], noise.reshape(results[0].shape)).numpy())


def _deviation(results: list[Tensor], args: Arguments, kwargs: dict[str, Any], unit: float) -> Array:
    deviation = results[0]
    extra = torch.from_numpy(_variance([deviation.square()], args, kwargs, unit))
    return np.asarray(((deviation.square() + extra).sqrt() - deviation).numpy())


def _standardized(x: Tensor, dims: list[int], weight: Tensor | None, rstd: Tensor, unit: float) -> Array:
    """Error of `(x - mean) * rstd * weight` through errors of the mean and of the variance."""
    mean, noise = _mean_noise(x, dims, unit)
    variance = (x - mean).square().mean(dims, keepdim=True)
    relative = _variance_noise(variance, noise) * rstd.square() / 2
    error = rstd * (noise + unit * x.abs() + (x - mean).abs() * relative)
    if weight is not None:
        error = error * weight.abs()
    return np.asarray(error.numpy())


def _layer_norm(results: list[Tensor], args: Arguments, _: dict[str, Any], unit: float) -> Array | None:
    x, shape, weight = args[0], args[1], args[2]
    if len(results) < 3 or x.numel() == 0:
        return None
    dims = list(range(x.dim() - len(shape), x.dim()))
    return _standardized(x, dims, weight, results[2], unit)


def _group_norm(results: list[Tensor], args: Arguments, _: dict[str, Any], unit: float) -> Array | None:
    x, weight, groups = args[0], args[1], args[6]
    if x.numel() == 0:
        return None
    grouped = x.reshape(x.shape[0], groups, -1)
    error = torch.from_numpy(_standardized(grouped, [2], None, results[2].unsqueeze(-1), unit)).reshape(x.shape)
    if weight is not None:
        error = error * weight.abs().reshape([1, -1] + [1] * (x.dim() - 2))
    return np.asarray(error.numpy())


def _batch_norm(_results: list[Tensor], args: Arguments, _: dict[str, Any], unit: float) -> Array | None:
    x, weight, _bias, mean, variance, training, _momentum, eps = args[:8]
    if x.numel() == 0:
        return None
    lead = [1, -1] + [1] * (x.dim() - 2)
    scale = None if weight is None else weight.abs().reshape(lead)
    if training or mean is None:
        dims = [d for d in range(x.dim()) if d != 1]
        spread = (x - x.mean(dims, keepdim=True)).square().mean(dims, keepdim=True)
        return _standardized(x, dims, scale, (spread + eps).rsqrt(), unit)
    factor = (variance + eps).rsqrt().reshape(lead) * (1.0 if scale is None else scale)
    # Folded into a convolution it becomes x w' + b', with b' as large as mean w'.
    return np.asarray((2 * unit * factor * (x.abs() + mean.abs().reshape(lead))).numpy())


def _batch_norm_in_eval(results: list[Tensor], args: Arguments, kwargs: dict[str, Any], unit: float) -> Array | None:
    return _batch_norm(results, (*args[:5], False, *args[5:]), kwargs, unit)


def _through_difference(_results: list[Tensor], args: Arguments, _: dict[str, Any], unit: float) -> Array:
    """GELU's negative tail is `x/2 (1 + erf)`, where one minus almost one is good to a unit of one."""
    return np.asarray((args[0].abs() * unit).numpy())


def _fourier(results: list[Tensor], args: Arguments, _: dict[str, Any], unit: float) -> Array:
    """Each frequency is a sum over all samples: its error is relative to the norm of the signal, not to itself."""
    x, dims = args[0], list(args[1])
    norm = x.abs().square().sum(dims, keepdim=True).sqrt()
    stages = math.log2(max(2, math.prod(x.shape[d] for d in dims)))
    return np.asarray((unit * stages * norm).expand(results[0].shape).numpy())


_RULES: dict[str, Callable[[list[Tensor], Arguments, dict[str, Any], float], Array | None]] = {
    "var": _variance,
    "std": _deviation,
    "native_layer_norm": _layer_norm,
    "native_group_norm": _group_norm,
    "native_batch_norm": _batch_norm,
    "_native_batch_norm_legit_no_training": _batch_norm_in_eval,
    "gelu": _through_difference,
    "_fft_r2c": _fourier,
    "_fft_c2c": _fourier,
    "_fft_c2r": _fourier,
}
