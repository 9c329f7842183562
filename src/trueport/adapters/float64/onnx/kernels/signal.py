"""Fourier transforms. Complex numbers are a last dimension of size 2, real ones of size 1."""

from __future__ import annotations

import numpy as np

from trueport.adapters.float64.onnx.dtypes import Array
from trueport.adapters.float64.onnx.registry import Call, kernel


def _as_complex(x: Array) -> Array:
    return x[..., 0] if x.shape[-1] == 1 else x[..., 0] + 1j * x[..., 1]


def _as_real(x: Array) -> Array:
    return np.stack([x.real, x.imag], axis=-1)


@kernel("DFT")
def dft(call: Call, x: Array, length: Array | None = None, axis: Array | None = None) -> Array:
    """Returns the discrete Fourier transform along an axis, or its inverse."""
    given = call.attributes["axis"] if call.opset < 20 else -2 if axis is None else int(axis.reshape(()))
    along = given % x.ndim
    onesided = bool(call.attributes["onesided"])
    values = _as_complex(x)
    count = None if length is None else int(length.reshape(()))
    if call.attributes["inverse"]:
        if onesided:
            return np.asarray(np.fft.irfft(values, n=count, axis=along))[..., None]
        return _as_real(np.asarray(np.fft.ifft(values, n=count, axis=along)))
    result = np.asarray(np.fft.fft(values, n=count, axis=along))
    if onesided:
        result = np.take(result, np.arange(result.shape[along] // 2 + 1), axis=along)
    return _as_real(result)


@kernel("STFT")
def stft(call: Call, x: Array, step: Array, window: Array | None = None, length: Array | None = None) -> Array:
    """Returns the Fourier transforms of overlapping frames, [batch, frame, frequency, 2]."""
    default = x.shape[1] if window is None else window.shape[0]
    size = default if length is None else int(length.reshape(()))
    hop = int(step.reshape(()))
    signal = _as_complex(x) if x.ndim == 3 else x
    starts = np.arange(1 + (signal.shape[1] - size) // hop) * hop
    frames = signal[:, starts[:, None] + np.arange(size)]
    if window is not None:
        frames = frames * window
    result = np.asarray(np.fft.fft(frames, axis=-1))
    if call.attributes["onesided"]:
        result = result[..., : size // 2 + 1]
    return _as_real(result)
