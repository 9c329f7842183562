"""Convolutions, by PyTorch in float64 where it can be imported, else by NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from trueport.adapters.float64.onnx.dtypes import Array
from trueport.adapters.float64.onnx.kernels import pytorch
from trueport.adapters.float64.onnx.kernels.activation import sigmoid
from trueport.adapters.float64.onnx.kernels.padding import constant_pad
from trueport.adapters.float64.onnx.kernels.pytorch import share
from trueport.adapters.float64.onnx.kernels.windows import Windows, channels_first, windows_of
from trueport.adapters.float64.onnx.registry import Call, kernel


def _is_plain(x: Array, w: Array) -> bool:
    return x.dtype == np.float64 and w.dtype == np.float64 and 3 <= x.ndim <= 5 and x.size > 0 and w.size > 0


@kernel("Conv")
def conv(call: Call, x: Array, w: Array, b: Array | None = None) -> Array:
    """Returns the convolution of x with w (a cross-correlation), plus b for each output channel."""
    windows = windows_of(call, x.shape[2:], w.shape[2:])
    padded = constant_pad(x, [(0, 0), (0, 0), *windows.reach(x.shape[2:])], 0)
    groups = call.attributes.get("group", 1)
    torch = pytorch.find_torch() if _is_plain(padded, w) else None
    result = convolve(padded, w, windows, groups) if torch is None else _conv_torch(torch, padded, w, windows, groups)
    return result if b is None else result + channels_first(b, result.ndim)


def _conv_torch(torch: Any, x: Array, w: Array, windows: Windows, groups: int) -> Array:
    function = {3: torch.conv1d, 4: torch.conv2d, 5: torch.conv3d}[x.ndim]
    with torch.inference_mode():
        result = function(share(torch, x), share(torch, w), None, windows.strides, 0, windows.dilations, groups)
    # The padded input may hold one more window than the output has, where a stride leaves a remainder.
    array: Array = result.numpy()[(slice(None), slice(None), *(slice(n) for n in windows.output))]
    return array


def convolve(x: Array, w: Array, windows: Windows, groups: int) -> Array:
    """Returns the convolution of a padded input, by NumPy: one matrix product for each position in the kernel."""
    batch, channels = x.shape[:2]
    filters, per_group = w.shape[:2]
    result = np.zeros((batch, groups, filters // groups, *windows.output), dtype=x.dtype)
    grouped = x.reshape(batch, groups, channels // groups, *x.shape[2:])
    weights = w.reshape(groups, filters // groups, per_group, *w.shape[2:])
    for offset, where in windows.offsets():
        part = grouped[(slice(None),) * 3 + where].reshape(batch, groups, per_group, -1)
        result += np.matmul(weights[(slice(None),) * 3 + offset], part).reshape(result.shape)
    return result.reshape(batch, filters, *windows.output)


@kernel("ConvTranspose")
def conv_transpose(call: Call, x: Array, w: Array, b: Array | None = None) -> Array:
    """Returns the transposed convolution: each input element adds its multiple of the kernel to the output."""
    rank = x.ndim - 2
    strides = call.attributes.get("strides") or [1] * rank
    dilations = call.attributes.get("dilations") or [1] * rank
    extra = call.attributes.get("output_padding") or [0] * rank
    groups = call.attributes.get("group", 1)
    torch = pytorch.find_torch() if _is_plain(x, w) else None
    if torch is None:
        full = _spread(x, w, strides, dilations, groups)
    else:
        function = {3: torch.conv_transpose1d, 4: torch.conv_transpose2d, 5: torch.conv_transpose3d}[x.ndim]
        with torch.inference_mode():
            full = function(share(torch, x), share(torch, w), None, strides, 0, 0, groups, dilations).numpy()
    before, output = _transposed_window(call, x.shape[2:], full.shape[2:], strides, extra)
    behind = [o + p - n for o, p, n in zip(output, before, full.shape[2:], strict=True)]
    full = constant_pad(
        full, [(0, 0), (0, 0), *((max(-p, 0), max(n, 0)) for p, n in zip(before, behind, strict=True))], 0
    )
    index = tuple(slice(max(p, 0), max(p, 0) + o) for p, o in zip(before, output, strict=True))
    result: Array = full[(slice(None), slice(None), *index)]
    return result if b is None else result + channels_first(b, result.ndim)


def _transposed_window(
    call: Call, spatial: Sequence[int], full: Sequence[int], strides: Sequence[int], extra: Sequence[int]
) -> tuple[list[int], list[int]]:
    """Returns where the output begins in the full result, and its size."""
    rank = len(spatial)
    auto = call.attributes.get("auto_pad", "NOTSET")
    wanted = call.attributes.get("output_shape")
    if not wanted and auto in ("SAME_UPPER", "SAME_LOWER"):
        wanted = [n * s for n, s in zip(spatial, strides, strict=True)]
    if wanted:
        wanted = list(wanted)[-rank:]
        totals = [max(f + e - o, 0) for f, e, o in zip(full, extra, wanted, strict=True)]
        before = [t // 2 if auto == "SAME_UPPER" else t - t // 2 for t in totals]
        return before, wanted
    pads = call.attributes.get("pads") if auto == "NOTSET" else None
    pads = pads or [0] * (2 * rank)
    output = [f + e - pads[i] - pads[i + rank] for i, (f, e) in enumerate(zip(full, extra, strict=True))]
    return list(pads[:rank]), output


@kernel("CausalConvWithState")
def causal_conv(
    call: Call, x: Array, w: Array, b: Array | None = None, past: Array | None = None
) -> tuple[Array, Array]:
    """Returns the depthwise convolution of a signal with its past in front, and the past for the next call."""
    reach = w.shape[2] - 1
    padded = constant_pad(x, [(0, 0), (0, 0), (reach, 0)], 0) if past is None else np.concatenate([past, x], axis=2)
    windows = Windows((w.shape[2],), (1,), (1,), (0,), (0,), (x.shape[2],))
    result = convolve(padded, w, windows, x.shape[1])
    result = result if b is None else result + channels_first(b, 3)
    if call.attributes.get("activation", "none") in ("silu", "swish"):
        result = result * sigmoid(result)
    return result, padded[:, :, padded.shape[2] - reach :]


def _spread(x: Array, w: Array, strides: Sequence[int], dilations: Sequence[int], groups: int) -> Array:
    batch, channels, *spatial = x.shape
    per_group, kernel_shape = w.shape[1], w.shape[2:]
    full = [(n - 1) * s + (k - 1) * d + 1 for n, s, k, d in zip(spatial, strides, kernel_shape, dilations, strict=True)]
    result = np.zeros((batch, groups, per_group, *full), dtype=x.dtype)
    columns = x.reshape(batch, groups, channels // groups, -1)
    weights = w.reshape(groups, channels // groups, per_group, *kernel_shape)
    for offset in np.ndindex(*kernel_shape):
        where = tuple(
            slice(o * d, o * d + (n - 1) * s + 1, s)
            for o, d, n, s in zip(offset, dilations, spatial, strides, strict=True)
        )
        product = np.matmul(np.swapaxes(weights[(slice(None),) * 3 + offset], 1, 2), columns)
        result[(slice(None),) * 3 + where] += product.reshape(batch, groups, per_group, *spatial)
    return result.reshape(batch, groups * per_group, *full)


@kernel("ConvInteger")
def conv_integer(call: Call, x: Array, w: Array, x_zero: Array | None = None, w_zero: Array | None = None) -> Array:
    """Returns the int32 convolution of integer arrays less their zero points; padding stands for the zero point."""
    signal, weights = x.astype(np.int32), w.astype(np.int32)
    if x_zero is not None:
        signal = signal - x_zero.astype(np.int32)
    if w_zero is not None:
        zero = w_zero.astype(np.int32)
        weights = weights - (zero.reshape(-1, *[1] * (w.ndim - 1)) if zero.size > 1 else zero)
    windows = windows_of(call, x.shape[2:], w.shape[2:])
    padded = constant_pad(signal, [(0, 0), (0, 0), *windows.reach(x.shape[2:])], 0)
    return convolve(padded, weights, windows, call.attributes.get("group", 1))
