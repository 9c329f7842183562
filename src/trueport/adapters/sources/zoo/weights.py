"""Weights with which every layer of an untrained network keeps the scale of its activations.

The usual initializations (std 0.02, zero heads, LayerScale of 1e-5, positions of zero) make outputs of 1e-14 or
exactly zero, in which no error of a converter can be seen.  Here every tensor is drawn from one seeded generator by
what it does, and then one forward pass rescales each weighted layer whose output is too small or too large (the
layer-sequential unit-variance idea of Mishkin and Matas, "All you need is a good init", ICLR 2016).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import numpy as np
import torch
from torch import nn

_CLIP_LOGIT_SCALE = math.log(1 / 0.07)  # where CLIP starts, and SigLIP near it
_LOWEST_STD, _HIGHEST_STD = 0.5, 2.0
# Their values are a time scale, a temperature or a decay with a meaning of its own: only shaken by some percent.
_SPECIAL = ("A_log", "D", "dt_bias", "temperature", "beta", "time_decay", "lambda_param")


def draw_weights(module: nn.Module, generator: np.random.Generator) -> None:
    """Draws every parameter and every running statistic of `module` anew, in place and in eval mode.

    Weights of linear and convolution layers preserve variance (std 1/sqrt(fan in)), weights of norms are 1 +- 0.2
    (0 +- 0.2 where the module adds the one itself), biases N(0, 0.1), embeddings, positions and tokens N(0, 1) or
    N(0, 0.5), gammas near their purpose and never zero.
    """
    module.eval()
    owners = {id(p): owner for owner in module.modules() for p in owner.parameters(recurse=False)}
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            values = _drawn(name, parameter, owners[id(parameter)], generator)
            parameter.copy_(torch.from_numpy(np.asarray(values)).to(parameter.dtype))
        for owner in module.modules():
            if getattr(owner, "running_var", None) is not None:
                _draw_statistics(owner, generator)


def calibrate(module: nn.Module, args: tuple[Any, ...]) -> None:
    """Runs `module` once and, layer by layer in order of execution, repairs its scales in place.

    A batch norm takes the statistics of what it gets here (its own noise left in), and a linear, convolution or
    output layer whose output has a std outside [0.5, 2] is divided by it.  Shared weights are left alone.
    """
    shared = _shared_tensors(module)
    done: set[int] = set()
    with ExitStack() as hooks, torch.no_grad():
        for layer in module.modules():
            if getattr(layer, "running_var", None) is not None:
                hooks.callback(layer.register_forward_pre_hook(_take_statistics).remove)
            elif _fan_in(layer) and id(layer._parameters.get("weight")) not in shared:
                hooks.callback(layer.register_forward_hook(_rescaled_once(done)).remove)
        module(*args)


def _drawn(name: str, parameter: torch.Tensor, owner: nn.Module, generator: np.random.Generator) -> Any:
    shape = tuple(parameter.shape)
    last = name.rpartition(".")[2]
    normal = np.asarray(generator.standard_normal(shape))
    clipped = np.clip(normal, -2.5, 2.5)
    if last == "logit_scale":
        return np.full(shape, _CLIP_LOGIT_SCALE)
    if last in _SPECIAL:
        return parameter.detach().double().numpy() * (1 + 0.05 * clipped)
    if _is_norm(owner) and last in ("weight", "gamma", "scale"):
        centre = 0.0 if bool((parameter == 0).all()) else 1.0
        return centre + 0.2 * clipped
    if isinstance(owner, nn.Embedding):
        return normal
    fan_in = _fan_in(owner)
    if fan_in and last in ("weight", "weight_v", "original1"):
        return normal / math.sqrt(fan_in)
    if "bias_table" in last or "relative_attention_bias" in name:
        return 0.5 * normal
    if last.endswith("bias") or last.startswith("bias"):
        return 0.1 * normal
    if _is_gain(last, parameter):
        return 0.7 + 0.1 * clipped
    if last in ("weight_g", "original0"):  # lengths of the rows of a weight norm
        return _row_length(owner, parameter.numel()) * (1 + 0.1 * clipped)
    if "experts" in type(owner).__name__.lower():  # one matrix per expert, the inputs last
        return normal / math.sqrt(shape[-1])
    return normal * (0.5 if parameter.dim() != 2 or "token" in last or "pos" in last else 1 / math.sqrt(shape[-1]))


def _is_gain(last: str, parameter: torch.Tensor) -> bool:
    small = parameter.dim() == 1 or parameter.numel() == max(parameter.shape, default=1)
    return small and any(part in last for part in ("gamma", "lambda", "layer_scale", "gain"))


def _row_length(owner: nn.Module, rows: int) -> float:
    """Returns the length of a row for which the entries of the weight have a std of 1/sqrt(fan in)."""
    outputs = max((p.shape[0] for p in owner.parameters(recurse=False) if p.numel() > rows), default=rows)
    return math.sqrt(outputs / rows)


def _is_norm(layer: nn.Module) -> bool:
    return "norm" in type(layer).__name__.lower() and getattr(getattr(layer, "weight", None), "dim", lambda: 0)() == 1


def _fan_in(layer: nn.Module) -> int:
    """Returns how many products make one output of a layer with weights, or 0 for another layer."""
    # A weight that is computed from others (weight norm) is no parameter and cannot be rescaled.
    weight: Any = layer._parameters.get("weight")
    if not isinstance(weight, torch.Tensor) or weight.dim() < 2 or isinstance(layer, nn.Embedding):
        return 0
    if type(layer).__name__ == "Conv1D":  # the transposed linear layer of GPT-2
        return int(weight.shape[0])
    if isinstance(layer, nn.ConvTranspose1d | nn.ConvTranspose2d):
        overlap = float(math.prod(layer.kernel_size) / math.prod(layer.stride))
        return max(1, round(float(weight.shape[0] * overlap / layer.groups)))
    if isinstance(layer, nn.Linear) or "Conv" in type(layer).__name__ or "Linear" in type(layer).__name__:
        return int(math.prod(weight.shape[1:]))
    return 0


def _draw_statistics(layer: Any, generator: np.random.Generator) -> None:
    size = tuple(layer.running_var.shape)
    layer.running_mean.copy_(torch.from_numpy(0.2 * generator.standard_normal(size)))
    layer.running_var.copy_(torch.from_numpy(generator.uniform(0.7, 1.4, size)))


def _take_statistics(layer: Any, inputs: tuple[torch.Tensor, ...]) -> None:
    axes = [axis for axis in range(inputs[0].dim()) if axis != 1]
    variance, mean = torch.var_mean(inputs[0], dim=axes, correction=0)
    # The drawn values stay in as the difference between the batch and the population.
    layer.running_mean.copy_(mean + layer.running_mean * variance.sqrt())
    # A channel that hardly varies would be blown up, and rounding errors with it.
    floor = max(1e-2, 0.2 * float(inputs[0].square().mean()))
    layer.running_var.copy_((variance * layer.running_var).clamp_min(floor))


def _rescaled_once(done: set[int]) -> Callable[[Any, Any, Any], Any]:
    def hook(layer: Any, _inputs: Any, output: Any) -> Any:
        if id(layer) in done or not isinstance(output, torch.Tensor) or output.numel() < 2:
            return None
        done.add(id(layer))
        std = float(output.std())
        if not math.isfinite(std) or std == 0:
            return None
        if not _LOWEST_STD <= std <= _HIGHEST_STD:
            for parameter in layer.parameters(recurse=False):
                parameter.div_(std)
            output = output / std
        return _centred(layer, output)

    return hook


def _centred(layer: Any, output: torch.Tensor) -> torch.Tensor:
    """Moves a map of a single channel into the positive, where a final ReLU does not erase most of it."""
    if layer.weight.shape[0] != 1 or output.dim() != 4 or getattr(layer, "bias", None) is None:
        return output
    shift = 0.5 * output.std() - output.mean()
    layer.bias.add_(shift)
    return output + shift


def _shared_tensors(module: nn.Module) -> set[int]:
    seen: set[int] = set()
    shared: set[int] = set()
    for _, parameter in module.named_parameters(remove_duplicate=False):
        (shared if id(parameter) in seen else seen).add(id(parameter))
    return shared
