"""Normalizations, with variances computed from deviations (two passes)."""

from __future__ import annotations

import numpy as np

from trueport.adapters.float64.onnx.dtypes import Array
from trueport.adapters.float64.onnx.kernels.padding import constant_pad
from trueport.adapters.float64.onnx.kernels.reduction import mean
from trueport.adapters.float64.onnx.kernels.windows import channels_first
from trueport.adapters.float64.onnx.registry import Call, kernel


def standardize(x: Array, axes: tuple[int, ...], epsilon: float) -> tuple[Array, Array, Array]:
    """Returns (x - mean) / sqrt(variance + epsilon), the mean and the reciprocal of the root, over `axes`."""
    center = mean(x, axes)
    deviation = x - center
    root = np.sqrt(mean(np.square(deviation), axes) + epsilon)
    return deviation / root, center, np.asarray(1.0 / root)


def _is_inference_or_declared(call: Call) -> bool:
    # Before operator set 14, training mode showed only in the number of outputs; before 9, statistics could be spatial.
    return call.opset >= 14 or (call.n_outputs == 1 and bool(call.attributes.get("spatial", 1)))


@kernel("BatchNormalization", supports=_is_inference_or_declared)
def batch_normalization(
    call: Call, x: Array, scale: Array, bias: Array, average: Array, variance: Array
) -> Array | tuple[Array, ...]:
    """Returns x normalized by the given statistics; in training mode by those of the batch, and the running ones."""
    epsilon = call.attributes["epsilon"]
    if not call.attributes.get("training_mode", 0):
        centered = (x - channels_first(average, x.ndim)) / np.sqrt(channels_first(variance, x.ndim) + epsilon)
        return np.asarray(centered * channels_first(scale, x.ndim) + channels_first(bias, x.ndim))
    axes = (0, *range(2, x.ndim))
    normal, batch_mean, _ = standardize(x, axes, epsilon)
    batch_variance = mean(np.square(x - batch_mean), axes).reshape(-1)
    momentum = call.attributes["momentum"]
    result = normal * channels_first(scale, x.ndim) + channels_first(bias, x.ndim)
    running_mean = average * momentum + batch_mean.reshape(-1) * (1.0 - momentum)
    return result, running_mean, variance * momentum + batch_variance * (1.0 - momentum)


@kernel("InstanceNormalization")
def instance_normalization(call: Call, x: Array, scale: Array, bias: Array) -> Array:
    """Returns x normalized over the spatial dimensions of each channel of each instance."""
    normal, _, _ = standardize(x, tuple(range(2, x.ndim)), call.attributes["epsilon"])
    return normal * channels_first(scale, x.ndim) + channels_first(bias, x.ndim)


@kernel("LayerNormalization")
def layer_normalization(
    call: Call, x: Array, scale: Array | None = None, bias: Array | None = None
) -> tuple[Array, ...]:
    """Returns x normalized over the dimensions from `axis` on, the means, and the reciprocal deviations."""
    axis = call.attributes.get("axis", -1) % x.ndim
    epsilon = call.attributes.get("epsilon", float(np.float32(1e-5)))
    normal, center, inverse = standardize(x, tuple(range(axis, x.ndim)), epsilon)
    result = normal if scale is None else normal * scale
    return result if bias is None else result + bias, center, inverse


def rms_normalize(x: Array, axes: tuple[int, ...], epsilon: float) -> Array:
    """Returns x / sqrt(mean(x^2) + epsilon) over `axes`."""
    return np.asarray(x / np.sqrt(mean(np.square(x), axes) + epsilon))


@kernel("RMSNormalization")
def rms_normalization(call: Call, x: Array, scale: Array) -> Array:
    """Returns x divided by its root mean square over the dimensions from `axis` on."""
    axis = call.attributes["axis"] % x.ndim
    return rms_normalize(x, tuple(range(axis, x.ndim)), call.attributes["epsilon"]) * scale


@kernel("GroupNormalization")
def group_normalization(call: Call, x: Array, scale: Array, bias: Array) -> Array:
    """Returns x normalized over groups of channels; scale and bias are per group before operator set 21."""
    groups = call.attributes["num_groups"]
    parts = x.reshape(x.shape[0], groups, -1)
    normal, _, _ = standardize(parts, (2,), call.attributes["epsilon"])
    per_group = call.opset < 21
    if per_group:
        return (normal * scale[:, None] + bias[:, None]).reshape(x.shape)
    return normal.reshape(x.shape) * channels_first(scale, x.ndim) + channels_first(bias, x.ndim)


@kernel("LRN")
def local_response_normalization(call: Call, x: Array) -> Array:
    """Returns x divided by a power of the sum of squares over neighbouring channels."""
    size = call.attributes["size"]
    before, after = (size - 1) // 2, size // 2
    squares = constant_pad(np.square(x), [(0, 0), (before, after), *[(0, 0)] * (x.ndim - 2)], 0.0)
    total = np.asarray(sum(squares[:, i : i + x.shape[1]] for i in range(size)))
    scale = call.attributes["bias"] + call.attributes["alpha"] / size * total
    return np.asarray(x / scale ** call.attributes["beta"])


@kernel("LpNormalization")
def lp_normalization(call: Call, x: Array) -> Array:
    """Returns x divided by its 1- or 2-norm along an axis; zero where the norm is zero."""
    axis = call.attributes["axis"]
    if call.attributes["p"] == 1:
        norm = np.sum(np.abs(x), axis=axis, keepdims=True)
    else:
        norm = np.sqrt(np.sum(np.square(x), axis=axis, keepdims=True))
    return np.asarray(x / np.where(norm == 0, 1.0, norm))


@kernel("MeanVarianceNormalization")
def mean_variance_normalization(call: Call, x: Array) -> Array:
    """Returns (x - mean) / (deviation + 1e-9), the addend in float32 as in the standard's definition."""
    axes = tuple(axis % x.ndim for axis in call.attributes["axes"])
    deviation = x - mean(x, axes)
    spread = np.sqrt(mean(np.square(deviation), axes))
    return np.asarray(deviation / (spread + float(np.float32(1e-9))))
