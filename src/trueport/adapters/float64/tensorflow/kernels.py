"""Float64 kernels for operators that TensorFlow computes in single precision only, by their definitions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Attributes = Mapping[str, Any]
KERNELS: dict[str, Callable[..., Any]] = {}


def kernel(*operators: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Returns a decorator that registers a function of (attributes, *arguments) as the kernel of operators."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        KERNELS.update(dict.fromkeys(operators, function))
        return function

    return register


@kernel("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3")
def fused_batch_norm(
    attributes: Attributes, x: Array, scale: Array, offset: Array, mean: Array, variance: Array
) -> tuple[Array, ...]:
    """Normalizes by the given statistics, or by those of the batch in training (Ioffe and Szegedy 2015)."""
    layout = attributes.get("data_format", "NHWC")
    channel = 1 if layout.startswith("NC") else x.ndim - 1
    axes = tuple(i for i in range(x.ndim) if i != channel)
    shape = [1] * x.ndim
    shape[channel] = x.shape[channel]
    epsilon = float(attributes.get("epsilon", 1e-4))
    used_mean, used_variance = mean, variance
    kept_mean, kept_variance = mean, variance
    if attributes.get("is_training", True):
        used_mean, used_variance = x.mean(axes), x.var(axes)
        count = x.size // max(x.shape[channel], 1)
        share = float(attributes.get("exponential_avg_factor", 1.0))
        old = (1 - share) if share != 1.0 else 0.0
        # The running statistics take the unbiased estimate.
        kept_mean = share * used_mean + (old * mean if old else 0.0)
        kept_variance = share * used_variance * (count / max(count - 1, 1)) + (old * variance if old else 0.0)
    slope = scale / np.sqrt(used_variance + epsilon)
    y = (x - used_mean.reshape(shape)) * slope.reshape(shape) + offset.reshape(shape)
    return y, kept_mean, kept_variance, used_mean, used_variance, np.zeros(0)


@kernel("LRN")
def local_response_normalization(attributes: Attributes, x: Array) -> Array:
    """Divides by a power of the sum of squares over neighbouring channels (the last axis)."""
    radius = int(attributes.get("depth_radius", 5))
    squares = np.pad(np.square(x), [(0, 0)] * (x.ndim - 1) + [(radius + 1, radius)])
    running = np.cumsum(squares, axis=-1)
    total = running[..., 2 * radius + 1 :] - running[..., : -2 * radius - 1]
    bias, alpha, beta = (float(attributes.get(n, d)) for n, d in (("bias", 1.0), ("alpha", 1.0), ("beta", 0.5)))
    return np.asarray(x / (bias + alpha * total) ** beta)


@kernel("ResizeBilinear")
def resize_bilinear(attributes: Attributes, images: Array, size: Array) -> Array:
    """Interpolates linearly along height and width; coordinates by `half_pixel_centers` and `align_corners`."""
    rows = _linear(images.shape[1], int(size[0]), attributes)
    columns = _linear(images.shape[2], int(size[1]), attributes)
    wide = np.asarray(images, np.float64)
    return np.asarray(np.einsum("ih,nhwc,jw->nijc", rows, wide, columns, optimize=True))


def _linear(size: int, wanted: int, attributes: Attributes) -> Array:
    """Returns the weights [wanted, size] of linear interpolation."""
    aligned = bool(attributes.get("align_corners", False))
    scale = (size - 1) / (wanted - 1) if aligned and wanted > 1 else size / max(wanted, 1)
    place = np.arange(wanted, dtype=np.float64)
    at = (place + 0.5) * scale - 0.5 if attributes.get("half_pixel_centers", False) else place * scale
    low = np.floor(at)
    share = at - low
    weights = np.zeros((wanted, size))
    lower = np.clip(low, 0, size - 1).astype(int)
    upper = np.clip(low + 1, 0, size - 1).astype(int)
    np.add.at(weights, (np.arange(wanted), lower), 1 - share)
    np.add.at(weights, (np.arange(wanted), upper), share)
    return weights


_SAMPLING: dict[str, tuple[float, Callable[[Array], Array]]] = {
    "box": (0.5, lambda x: np.where(x < 0.5, 1.0, np.where(x == 0.5, 0.5, 0.0))),
    "triangle": (1.0, lambda x: np.maximum(1 - x, 0)),
    "keyscubic": (
        2.0,
        lambda x: np.where(
            x >= 2, 0.0, np.where(x >= 1, ((-0.5 * x + 2.5) * x - 4) * x + 2, ((1.5 * x - 2.5) * x) * x + 1)
        ),
    ),
    "gaussian": (1.5, lambda x: np.where(x < 1.5, np.exp(-2 * x * x), 0.0)),
}


def _lanczos(radius: int) -> Callable[[Array], Array]:
    def sample(x: Array) -> Array:
        with np.errstate(all="ignore"):
            value = radius * np.sin(np.pi * x) * np.sin(np.pi * x / radius) / (np.pi * x) ** 2
        return np.asarray(np.where(x <= 1e-3, 1.0, np.where(x > radius, 0.0, value)))

    return sample


for _radius, _name in ((1, "lanczos1"), (3, "lanczos3"), (5, "lanczos5")):
    _SAMPLING[_name] = (float(_radius), _lanczos(_radius))


@kernel("ScaleAndTranslate")
def scale_and_translate(attributes: Attributes, images: Array, size: Array, scale: Array, translation: Array) -> Array:
    """Resamples with a kernel that is widened where the image shrinks, if antialiasing is on."""
    radius, sample = _SAMPLING[attributes.get("kernel_type", "lanczos3")]
    antialias = bool(attributes.get("antialias", True))
    matrices = [
        _spans(images.shape[1 + i], int(size[i]), float(scale[i]), float(translation[i]), radius, sample, antialias)
        for i in range(2)
    ]
    wide = np.asarray(images, np.float64)
    return np.asarray(np.einsum("ih,nhwc,jw->nijc", matrices[0], wide, matrices[1], optimize=True))


def _spans(
    size: int, wanted: int, scale: float, translation: float, radius: float,
    sample: Callable[[Array], Array], antialias: bool,
) -> Array:  # fmt: skip
    inverse = 1.0 / scale
    widening = max(inverse, 1.0) if antialias else 1.0
    at = (np.arange(wanted) + 0.5) * inverse - translation * inverse
    distance = np.abs(np.arange(size)[None, :] + 0.5 - at[:, None]) / widening
    weights = np.where(distance <= radius, sample(distance), 0.0)
    total = weights.sum(axis=1, keepdims=True)
    inside = (at >= 0) & (at <= size)
    with np.errstate(all="ignore"):
        normal = np.where(np.abs(total) >= 1000 * np.finfo(np.float32).tiny, weights / total, 0.0)
    return np.where(inside[:, None], normal, 0.0)
