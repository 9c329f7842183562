"""Resize and Upsample, one axis after the other: interpolation is separable in every mode."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from trueport.adapters.float64.onnx.dtypes import Array
from trueport.adapters.float64.onnx.registry import Call, kernel


@dataclass(frozen=True, slots=True)
class _Axis:
    """One axis to resize: input and output size, the declared scale, and the region of interest."""

    size: int
    output: int
    scale: float
    exact: bool  # the scale is output / size; coordinates are then computed as i size / output, rounded once
    roi: tuple[float, float]

    @property
    def scaled(self) -> float:
        """The size of the whole resized axis, of which `output` is the whole part."""
        return float(self.output) if self.exact else self.scale * self.size

    def shrink(self, position: Array) -> Array:
        """Returns positions of the output, in units of input elements."""
        return position * self.size / self.output if self.exact else position / self.scale


@kernel("Resize", selects=False)
def resize(
    call: Call, x: Array, roi: Array | None = None, scales: Array | None = None, sizes: Array | None = None
) -> Array:
    """Returns x resampled to other sizes."""
    if call.opset < 11:
        return _resize_simple(call, x, roi)
    return _resize_axes(call, x, _axes(call, x, roi, scales, sizes))


@kernel("Upsample")
def upsample(call: Call, x: Array, scales: Array | None = None) -> Array:
    """Returns x enlarged by the given factors."""
    return _resize_simple(call, x, np.asarray(call.attributes["scales"]) if scales is None else scales)


def _resize_simple(call: Call, x: Array, scales: Array | None) -> Array:
    """Returns the resampling of operator sets 7 to 10: asymmetric; nearest means floor, in a reduction ceiling."""
    assert scales is not None
    linear = call.attributes["mode"] in ("linear", "bilinear")
    for index, scale in enumerate(scales.tolist()):
        axis = _Axis(x.shape[index], _scaled_size(scale, x.shape[index]), scale, False, (0.0, 1.0))
        if scale == 1.0:
            continue
        position = axis.shrink(np.arange(axis.output, dtype=np.float64))
        if linear:
            x = _apply(x, index, *_taps("linear", axis, position, call))
        else:
            nearest = np.ceil(position) if scale < 1.0 else np.floor(position)
            x = np.take(x, np.clip(nearest, 0, axis.size - 1).astype(np.int64), axis=index)
    return x


def _scaled_size(scale: float, size: int) -> int:
    # Runtimes multiply in float32, and where the product is a whole number only there, that is the size they give.
    return int(np.floor(np.float32(scale) * np.float32(size)))


def _axes(
    call: Call, x: Array, roi: Array | None, scales: Array | None, sizes: Array | None
) -> list[tuple[int, _Axis]]:
    along = [axis % x.ndim for axis in call.attributes.get("axes") or range(x.ndim)]
    if roi is not None and roi.size:
        regions = list(zip(roi[: len(along)].tolist(), roi[len(along) :].tolist(), strict=True))
    else:
        regions = [(0.0, 1.0)] * len(along)
    inputs = [x.shape[axis] for axis in along]
    if scales is not None and scales.size:
        factors = scales.tolist()
        outputs = [_scaled_size(factor, size) for factor, size in zip(factors, inputs, strict=True)]
        exact = False
    else:
        assert sizes is not None
        outputs, factors, exact = _from_sizes(call, sizes.tolist(), inputs)
    return [
        (axis, _Axis(size, output, factor, exact, region))
        for axis, size, output, factor, region in zip(along, inputs, outputs, factors, regions, strict=True)
    ]


def _from_sizes(call: Call, sizes: list[int], inputs: list[int]) -> tuple[list[int], list[float], bool]:
    factors = [output / size if size else 1.0 for output, size in zip(sizes, inputs, strict=True)]
    policy = call.attributes.get("keep_aspect_ratio_policy", "stretch")
    if policy == "stretch":
        return sizes, factors, True
    factor = min(factors) if policy == "not_larger" else max(factors)
    return [int(np.floor(factor * size + 0.5)) for size in inputs], [factor] * len(inputs), False


def _resize_axes(call: Call, x: Array, axes: Sequence[tuple[int, _Axis]]) -> Array:
    mode = call.attributes["mode"]
    crop = call.attributes["coordinate_transformation_mode"] == "tf_crop_and_resize"
    dtype = x.dtype
    for index, axis in axes:
        if axis.output == axis.size and axis.scale == 1.0 and not (crop and axis.roi != (0.0, 1.0)):
            continue
        position = _positions(call, axis)
        outside = (position < 0) | (position > axis.size - 1) if crop else None
        if mode == "nearest":
            nearest = _round(position, call.attributes.get("nearest_mode", "round_prefer_floor"))
            x = np.take(x, np.clip(nearest, 0, axis.size - 1).astype(np.int64), axis=index)
        else:
            x = _apply(x, index, *_taps(mode, axis, position, call))
        if outside is not None and outside.any():
            x = np.array(x)
            np.moveaxis(x, index, 0)[outside] = call.attributes["extrapolation_value"]
    return x if x.dtype == dtype else np.rint(x).astype(dtype)


def _positions(call: Call, axis: _Axis) -> Array:
    """Returns where each output element lies in the input.

    `length_resized` of the standard's formulas is the whole number of elements, as in ONNX Runtime and PyTorch; the
    standard's reference takes a fraction where a scale gives one.
    """
    y = np.arange(axis.output, dtype=np.float64)
    mode = call.attributes["coordinate_transformation_mode"]
    last = axis.size - 1
    if mode == "align_corners":
        return np.zeros_like(y) if axis.output == 1 else y * last / (axis.output - 1)
    if mode == "asymmetric":
        return axis.shrink(y)
    if mode == "tf_crop_and_resize":
        start, end = axis.roi
        if axis.output == 1:
            return np.full_like(y, 0.5 * (start + end) * last)
        return start * last + y * ((end - start) * last) / (axis.output - 1)
    if mode == "pytorch_half_pixel" and axis.output == 1:
        return np.zeros_like(y)
    if mode == "half_pixel_symmetric":
        return axis.size / 2 * (1 - axis.output / axis.scaled) + axis.shrink(y + 0.5) - 0.5
    if mode in ("half_pixel", "pytorch_half_pixel", "tf_half_pixel_for_nn"):
        return axis.shrink(y + 0.5) - (0.0 if mode == "tf_half_pixel_for_nn" else 0.5)
    raise ValueError(f"unknown coordinate transformation '{mode}'")


def _round(position: Array, mode: str) -> Array:
    if mode == "round_prefer_floor":
        return np.ceil(position - 0.5)
    if mode == "round_prefer_ceil":
        return np.floor(position + 0.5)
    return np.floor(position) if mode == "floor" else np.ceil(position)


def _taps(mode: str, axis: _Axis, position: Array, call: Call) -> tuple[Array, Array]:
    """Returns indices and weights of the input elements that make each output element, both [output, taps]."""
    # Each position lies in the half-open cell (base, base + 1], as in the standard's reference.
    base = np.ceil(position) - 1
    ratio = position - base
    shrunk = min(axis.scale, 1.0) if call.attributes.get("antialias", 0) else 1.0
    reach = 1 if mode == "linear" else 2
    start = int(np.floor(-reach / shrunk)) + 1
    steps = np.arange(start, 2 - start)
    distance = np.abs(steps[None, :] - ratio[:, None]) * shrunk
    if mode == "linear":
        weights = np.clip(1.0 - distance, 0.0, 1.0)
    else:
        weights = cubic_weight(distance, call.attributes["cubic_coeff_a"])
    indices = base[:, None] + steps[None, :]
    normalize = shrunk != 1.0
    if call.attributes.get("exclude_outside", 0):
        weights = np.where((indices >= 0) & (indices < axis.size), weights, 0.0)
        normalize = True
    if normalize:
        weights = weights / np.sum(weights, axis=1, keepdims=True)
    return np.clip(indices, 0, axis.size - 1).astype(np.int64), weights


def cubic_weight(distance: Array, a: float) -> Array:
    """Returns the weight of the cubic convolution kernel (Keys, 1981) at non-negative distances."""
    near = ((a + 2.0) * distance - (a + 3.0)) * distance * distance + 1.0
    far = ((a * distance - 5.0 * a) * distance + 8.0 * a) * distance - 4.0 * a
    return np.where(distance <= 1.0, near, np.where(distance < 2.0, far, 0.0))


def _apply(x: Array, axis: int, indices: Array, weights: Array) -> Array:
    shape = [1] * x.ndim
    shape[axis] = indices.shape[0]
    result = np.zeros((*x.shape[:axis], indices.shape[0], *x.shape[axis + 1 :]))
    for tap in range(indices.shape[1]):
        if np.any(weights[:, tap]):
            result += np.take(x, indices[:, tap], axis=axis) * weights[:, tap].reshape(shape)
    return result
