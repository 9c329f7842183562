"""Operators that make values from shapes and attributes."""

from __future__ import annotations

import math

import numpy as np

from trueport.adapters.float64.onnx.dtypes import Array, held_dtype
from trueport.adapters.float64.onnx.registry import Call, kernel


@kernel("ConstantOfShape", selects=True)
def constant_of_shape(call: Call, shape: Array) -> Array:
    """Returns an array of one value, by default zero."""
    value = call.attributes.get("value")
    if value is None:
        return np.zeros(tuple(shape.tolist()))
    return np.full(tuple(shape.tolist()), value.reshape(-1)[0], dtype=value.dtype)


@kernel("EyeLike", selects=True)
def eye_like(call: Call, x: Array) -> Array:
    """Returns ones on a diagonal of a matrix of the shape of x."""
    rows, columns = x.shape
    dtype = held_dtype(call.output_types[0]) if call.output_types[0] else x.dtype
    return np.eye(rows, columns, call.attributes["k"], dtype=dtype)


@kernel("Range")
def range_(call: Call, start: Array, limit: Array, delta: Array) -> Array:
    """Returns start + i delta for i below ceil((limit - start) / delta)."""
    del call
    first, last, step = (x.reshape(()) for x in (start, limit, delta))
    if start.dtype.kind == "f":
        count = max(math.ceil((last - first) / step), 0)
    else:
        count = max(-((int(first) - int(last)) // int(step)), 0)
    return np.asarray(first + np.arange(count, dtype=start.dtype) * step, dtype=start.dtype)


def _cosine_window(call: Call, size: Array, terms: tuple[float, float, float]) -> Array:
    count = int(size.reshape(()))
    period = count if call.attributes["periodic"] else count - 1
    angle = 2.0 * math.pi * np.arange(count) / period
    window = terms[0] - terms[1] * np.cos(angle) + terms[2] * np.cos(2.0 * angle)
    target = call.output_types[0]
    return np.asarray(window).astype(held_dtype(target or "float32"), copy=False)


@kernel("HannWindow")
def hann(call: Call, size: Array) -> Array:
    """Returns the Hann window."""
    return _cosine_window(call, size, (0.5, 0.5, 0.0))


@kernel("HammingWindow")
def hamming(call: Call, size: Array) -> Array:
    """Returns the Hamming window with the exact constants 25/46 and 21/46."""
    return _cosine_window(call, size, (25.0 / 46.0, 21.0 / 46.0, 0.0))


@kernel("BlackmanWindow")
def blackman(call: Call, size: Array) -> Array:
    """Returns the Blackman window."""
    return _cosine_window(call, size, (0.42, 0.5, 0.08))


@kernel("MelWeightMatrix")
def mel_weight_matrix(call: Call, n_mels: Array, dft_length: Array, rate: Array, low: Array, high: Array) -> Array:
    """Returns the weights that turn a spectrum into mel bands."""
    bands, length = int(n_mels.reshape(())), int(dft_length.reshape(()))
    bins = length // 2 + 1
    edges = np.asarray([float(low.reshape(())), float(high.reshape(()))])
    mel_low, mel_high = 2595.0 * np.log10(1.0 + edges / 700.0)
    mel = mel_low + np.arange(bands + 2) * ((mel_high - mel_low) / (bands + 2))
    frequency = 700.0 * (10.0 ** (mel / 2595.0) - 1.0)
    position = np.floor((length + 1) * frequency / float(rate.reshape(()))).astype(np.int64)
    weights = np.zeros((bins, bands))
    for band in range(bands):
        left, center, right = position[band : band + 3].tolist()
        if center == left:
            weights[center, band] = 1.0
        for i in range(left, center + 1):
            if center != left:
                weights[i, band] = (i - left) / (center - left)
        for i in range(center, right):
            if right != center:
                weights[i, band] = (right - i) / (right - center)
    return weights.astype(held_dtype(call.output_types[0] or "float32"), copy=False)
