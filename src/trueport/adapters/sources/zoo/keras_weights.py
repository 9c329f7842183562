"""Weights with which every layer of an untrained Keras network keeps the scale of its activations.

The idea is that of `weights` for PyTorch: every variable is drawn by what it does, then one run rescales each weighted
layer whose output is too small or too large (Mishkin and Matas, "All you need is a good init", ICLR 2016).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from keras import layers
from numpy.typing import NDArray

Array = NDArray[Any]
_LOWEST_STD, _HIGHEST_STD = 0.5, 2.0
_HOMOGENEOUS = frozenset({"linear", "relu", "leaky_relu"})
_WEIGHTED = (layers.Dense, layers.EinsumDense, layers.Conv1D, layers.Conv2D, layers.Conv3D, layers.DepthwiseConv2D,
             layers.SeparableConv2D, layers.Conv2DTranspose)  # fmt: skip


def draw_weights(model: Any, generator: np.random.Generator) -> None:
    """Draws every floating-point variable of a model anew, in place."""
    for variable in model.weights:
        if not str(variable.dtype).startswith(("float", "bfloat")):
            continue
        variable.assign(_drawn(variable.path, tuple(variable.shape), generator))


def calibrate(model: Any, inputs: Sequence[Array]) -> None:
    """Runs a functional model once and, layer by layer in order of execution, repairs its scales in place.

    A batch normalization takes the statistics of what it gets here; a weighted layer whose output has a standard
    deviation outside [0.5, 2] is divided by it.
    """
    wrapped = [layer for layer in _layers(model) if isinstance(layer, (*_WEIGHTED, layers.BatchNormalization))]
    done: set[int] = set()
    try:
        for layer in wrapped:
            _wrap(layer, done)
        listed = len(inputs) > 1 or isinstance(getattr(model, "_inputs_struct", None), list | tuple)
        model(list(inputs) if listed else inputs[0], training=False)
    finally:
        for layer in wrapped:
            layer.__dict__.pop("call", None)


def _layers(model: Any) -> Iterator[Any]:
    yield from model._flatten_layers(include_self=False, recursive=True)


def _wrap(layer: Any, done: set[int]) -> None:
    original = layer.call

    def call(*args: Any, **kwargs: Any) -> Any:
        if id(layer) in done:
            return original(*args, **kwargs)
        done.add(id(layer))
        if isinstance(layer, layers.BatchNormalization):
            _take_statistics(layer, np.asarray(args[0]))
            return original(*args, **kwargs)
        output = original(*args, **kwargs)
        std = float(np.std(np.asarray(output)))
        homogeneous = getattr(getattr(layer, "activation", None), "__name__", "linear") in _HOMOGENEOUS
        if homogeneous and math.isfinite(std) and std > 0 and not _LOWEST_STD <= std <= _HIGHEST_STD:
            _divide(layer, std)
            output = original(*args, **kwargs)
        return output

    layer.__dict__["call"] = call


def _divide(layer: Any, std: float) -> None:
    """Divides what a layer gives; of a separable layer only the second of its two kernels is divided."""
    for variable in layer.weights:
        if not variable.path.endswith("depthwise_kernel") or not isinstance(layer, layers.SeparableConv2D):
            variable.assign(np.asarray(variable) / std)


def _take_statistics(layer: Any, values: Array) -> None:
    axis = layer.axis if isinstance(layer.axis, int) else layer.axis[0]
    others = tuple(i for i in range(values.ndim) if i != axis % values.ndim)
    mean, variance = values.mean(others), values.var(others)
    # A channel that hardly varies would be blown up, and rounding errors with it.
    floor = max(1e-2, 0.2 * float(np.square(values).mean()))
    layer.moving_mean.assign(mean + 0.2 * np.sqrt(variance) * np.asarray(layer.moving_mean))
    layer.moving_variance.assign(np.maximum(variance * np.asarray(layer.moving_variance), floor))


def _drawn(path: str, shape: tuple[int, ...], generator: np.random.Generator) -> Array:
    last = path.rpartition("/")[2]
    normal = np.asarray(generator.standard_normal(shape))
    clipped = np.clip(normal, -2.5, 2.5)
    if last == "gamma" and "layer_scale" in path:
        return 0.7 + 0.1 * clipped
    if last == "gamma":
        return 1 + 0.2 * clipped
    if last == "moving_variance":
        return np.asarray(generator.uniform(0.7, 1.4, shape))
    if last in ("beta", "bias") or len(shape) < 2:
        return 0.1 * normal if "moving" not in last else normal
    if last == "embeddings":
        return normal
    return normal / math.sqrt(_fan_in(last, shape))


def _fan_in(last: str, shape: tuple[int, ...]) -> int:
    if last == "depthwise_kernel" or (last == "kernel" and len(shape) == 4 and shape[3] == 1):
        return math.prod(shape[:2])
    return math.prod(shape[:-1]) if len(shape) != 3 else max(shape[0], shape[0] * shape[1] // 2)
