"""ONNX's operators as far as rounding and decisions are concerned."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueport.adapters.float64.replay.dialect import Dialect, Jump, Selection, Terms
from trueport.adapters.float64.replay.jumps import CAST, PLAIN, REMAINDER, takes_real
from trueport.adapters.float64.replay.operation import Operation
from trueport.adapters.float64.replay.terms import reduced, summed_so_far

Array = NDArray[Any]


def _filter_terms(operation: Operation, arguments: list[Any], value: Array) -> int:
    del operation, value
    return int(math.prod(arguments[1].shape[1:])) + 1


def _with_scales(operation: Operation, arguments: list[Any], error: float) -> list[Any]:
    """A resize computes scales and coordinates in its own arithmetic."""
    policy = operation.attributes.get("keep_aspect_ratio_policy", "stretch")
    if len(arguments) == 3 and arguments[2] is not None:
        # Larger, never smaller: the size of the result is rounded down.
        return [*arguments[:2], arguments[2] * (1 + error)]
    if len(arguments) < 4 or arguments[3] is None or policy not in ("stretch", b"stretch"):
        return arguments
    axes = operation.attributes.get("axes")
    shape = np.asarray(arguments[0].shape)
    sizes = shape if not axes else shape[list(axes)]
    scales = np.asarray(arguments[3]) / np.maximum(sizes, 1) * (1 + error)
    return [arguments[0], arguments[1], scales.astype(np.float64), None]


def _inner(operation: Operation, arguments: list[Any], value: Array) -> int:
    del value
    first = arguments[0]
    axis = 0 if operation.operator == "Gemm" and operation.attributes.get("transA", 0) else -1
    return (int(first.shape[axis]) if first.ndim else 1) + 1


def _window_terms(operation: Operation, arguments: list[Any], value: Array) -> int:
    del arguments, value
    return int(math.prod(operation.attributes["kernel_shape"]))


def _counted(operation: Operation, arguments: list[Any], value: Array) -> Array | int:
    """How many elements are added into each: the same for ones."""
    del value
    if operation.operator != "Col2Im" and operation.attributes.get("reduction", "none") not in ("add", b"add"):
        return 1
    ones = [np.ones(a.shape) if isinstance(a, np.ndarray) and a.dtype.kind == "f" else a for a in arguments]
    return np.asarray(operation.apply(ones)[0])


def _transform_terms(operation: Operation, arguments: list[Any], value: Array) -> tuple[int, Array]:
    """For a Fourier transform: the length, and the power of the signal, which all frequencies share."""
    x, *rest = arguments
    given = operation.attributes.get("axis", -2)
    axis = (int(rest[1].reshape(())) if len(rest) > 1 and rest[1] is not None else given) % x.ndim
    power = np.square(x).sum(axis=(axis, -1), keepdims=True)
    inverse, count = bool(operation.attributes.get("inverse", 0)), x.shape[axis]
    if inverse and operation.attributes.get("onesided", 0):
        power, count = power * 2, value.shape[axis]
    length = count if not rest or rest[0] is None else int(rest[0].reshape(()))
    return length, np.broadcast_to(power / (length**2 if inverse else 1), value.shape)


def _frame_terms(operation: Operation, arguments: list[Any], value: Array) -> tuple[int, Array]:
    """For a transform of frames: their length, and the power of each, which the transform of the squares starts with.

    The signal's imaginary part and the window are squared as well; both are real factors of each term.
    """
    signal, step, window, length = [*arguments, *[None] * (4 - len(arguments))][:4]
    power = np.square(signal).sum(axis=-1) if signal.ndim == 3 else np.square(signal)
    squared = [power, step, None if window is None else np.square(window), length]
    total = np.abs(np.asarray(operation.apply(squared)[0])[..., :1, :1])
    size = signal.shape[1] if length is None and window is None else None
    size = size or (int(length.reshape(())) if length is not None else window.shape[0])
    return int(size), np.broadcast_to(total, value.shape)


_COMPOSITE = frozenset(
    {
        "LayerNormalization", "GroupNormalization", "InstanceNormalization", "BatchNormalization", "RMSNormalization",
        "LpNormalization", "MeanVarianceNormalization", "SkipLayerNormalization", "LRN", "LSTM", "GRU", "RNN", "Det",
        "Einsum", "Resize", "Upsample", "GridSample", "AffineGrid", "RoiAlign", "DeformConv", "Gelu", "BiasGelu",
        "FastGelu", "QuickGelu", "Softplus", "Mish", "DFT", "STFT", "MelWeightMatrix", "ReduceLogSumExp", "ReduceL2",
        "ReduceL1", "ReduceSumSquare", "ReduceLogSum", "LpPool", "GlobalLpPool", "SoftmaxCrossEntropyLoss",
        "NegativeLogLikelihoodLoss", "RotaryEmbedding", "Attention", "MultiHeadAttention", "HannWindow",
        "HammingWindow", "BlackmanWindow", "Sum", "Mean", "CausalConvWithState", "ReduceProd", "CumProd",
        "SimplifiedLayerNormalization", "SkipSimplifiedLayerNormalization", "FusedConv", "FusedGemm", "Scaler",
    }
)  # fmt: skip


_GELU = (2**0.5, 0.5**0.5, (2 / np.pi) ** 0.5, 0.044715)
_CONSTANTS_INSIDE = {"Gelu": _GELU, "BiasGelu": _GELU, "FastGelu": _GELU, "HardSwish": (1 / 6,)}


def _gated(operation: Operation, main: list[Any], outputs: list[Any], noisy: list[Any]) -> list[Any]:
    """What a threshold lets through moves with its argument."""
    del operation
    return [np.where(outputs[0] != 0, outputs[0] + (noisy[0] - main[0]), outputs[0])]


def _axis_of(default: int) -> Callable[[Operation, list[Any]], int]:
    def axis(operation: Operation, arguments: list[Any]) -> int:
        del arguments
        return int(operation.attributes.get("axis", default))

    return axis


def _nearest(operation: Operation, arguments: list[Any]) -> bool:
    del arguments
    mode = operation.attributes.get("mode", b"")
    return (mode.decode() if isinstance(mode, bytes) else str(mode)) == "nearest"


_QUANTIZED = Jump(inner=4.0)
JUMPS = {
    "Floor": PLAIN,
    "Ceil": PLAIN,
    "Round": PLAIN,
    "Sign": PLAIN,
    "Less": PLAIN,
    "LessOrEqual": PLAIN,
    "Greater": PLAIN,
    "GreaterOrEqual": PLAIN,
    "Equal": PLAIN,
    "NonZero": PLAIN,
    "Unique": PLAIN,
    "NonMaxSuppression": PLAIN,
    "OneHot": PLAIN,
    "Cast": CAST,
    "CastLike": CAST,
    "BitCast": PLAIN,
    "Mod": REMAINDER,
    "Shrink": Jump(when=takes_real, continuous=_gated),
    "ThresholdedRelu": Jump(when=takes_real, continuous=_gated),
    "GridSample": Jump(when=_nearest),
    "QuantizeLinear": _QUANTIZED,
    "DynamicQuantizeLinear": _QUANTIZED,
    "QLinearConv": _QUANTIZED,
    "QLinearMatMul": _QUANTIZED,
    "QLinearAdd": _QUANTIZED,
    "ArgMax": Jump(when=takes_real, selection=Selection(_axis_of(0), lambda _: True)),
    "ArgMin": Jump(when=takes_real, selection=Selection(_axis_of(0), lambda _: False)),
    "Hardmax": Jump(when=takes_real, selection=Selection(_axis_of(-1), lambda _: True)),
    "TopK": Jump(
        when=takes_real,
        selection=Selection(
            _axis_of(-1), lambda op: bool(op.attributes.get("largest", 1)), values=0, indices=1, first_of_ties=True
        ),
    ),
}

_CONTRACTIONS: dict[str, Terms] = {
    "MatMul": _inner, "Gemm": _inner, "FusedMatMul": _inner, "MatMulInteger": _inner, "Conv": _filter_terms,
    "ConvTranspose": _filter_terms, "ReduceSum": reduced,
    "ReduceMean": reduced, "CumSum": summed_so_far,
    "AveragePool": _window_terms, "GlobalAveragePool": reduced, "Col2Im": _counted, "Scatter": _counted,
    "ScatterElements": _counted, "ScatterND": _counted, "ConvInteger": _filter_terms,
}  # fmt: skip

ONNX = Dialect(
    selects=lambda operation: bool(getattr(operation, "selects", False)),
    contractions=_CONTRACTIONS,
    means=frozenset({"ReduceMean", "AveragePool", "GlobalAveragePool"}),
    transforms={"DFT": _transform_terms, "STFT": _frame_terms},
    composite=_COMPOSITE,
    derived={"Resize": _with_scales},
    softmax=frozenset({"Softmax", "LogSoftmax", "Attention", "MultiHeadAttention"}),
    absolute={
        "LogSoftmax": 4.0, "SoftmaxCrossEntropyLoss": 4.0, "ReduceLogSumExp": 4.0, "GRU": 8.0, "LSTM": 8.0, "RNN": 8.0,
        "HannWindow": 2.0, "HammingWindow": 2.0, "BlackmanWindow": 2.0,
    },
    additive=frozenset({"Add", "Sub"}),
    correctly_rounded=frozenset(
        {"Add", "Sub", "Mul", "Div", "Sqrt", "Reciprocal", "MatMul", "Gemm", "Conv", "ReduceSum", "Sum", "Cast",
         "CastLike", "CumSum", "Pow"}
    ),
    jumps=JUMPS,
    constants_inside=_CONSTANTS_INSIDE,
)  # fmt: skip
