"""ONNX's operators as far as rounding and decisions are concerned."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueport.adapters.float64.replay.dialect import Dialect, Jump, Selection, Terms
from trueport.adapters.float64.replay.operation import Operation

Array = NDArray[Any]


def _filter_terms(operation: Operation, arguments: list[Any], value: Array) -> int:
    del operation, value
    return int(math.prod(arguments[1].shape[1:])) + 1


def _reduced_terms(operation: Operation, arguments: list[Any], value: Array) -> int:
    del operation
    return max(1, int(arguments[0].size) // max(value.size, 1))


def _summed_so_far(operation: Operation, arguments: list[Any], value: Array) -> Array:
    del value
    return np.asarray(operation.apply([np.ones(arguments[0].shape), *arguments[1:]])[0])


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


_COMPOSITE = frozenset(
    {
        "LayerNormalization", "GroupNormalization", "InstanceNormalization", "BatchNormalization", "RMSNormalization",
        "LpNormalization", "MeanVarianceNormalization", "SkipLayerNormalization", "LRN", "LSTM", "GRU", "RNN", "Det",
        "Einsum", "Resize", "Upsample", "GridSample", "AffineGrid", "RoiAlign", "DeformConv", "Gelu", "BiasGelu",
        "FastGelu", "QuickGelu", "Softplus", "Mish", "DFT", "STFT", "MelWeightMatrix", "ReduceLogSumExp", "ReduceL2",
        "ReduceL1", "ReduceSumSquare", "ReduceLogSum", "LpPool", "GlobalLpPool", "SoftmaxCrossEntropyLoss",
        "NegativeLogLikelihoodLoss", "RotaryEmbedding", "Attention", "MultiHeadAttention", "HannWindow",
        "HammingWindow", "BlackmanWindow", "Sum", "Mean",
    }
)  # fmt: skip


def _is_real(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind == "f"


def _to_integer(operation: Operation, arguments: list[Any]) -> bool:
    return _is_real(arguments[0]) and operation.output_types[0].startswith(("int", "uint"))


def _real_first(operation: Operation, arguments: list[Any]) -> bool:
    del operation
    return _is_real(arguments[0])


def _out_of_range(operation: Operation, arguments: list[Any]) -> Array | None:
    """Where a cast to an integer is not defined: what is not finite or does not fit."""
    del operation
    value = arguments[0]
    return None if not _is_real(value) else ~np.isfinite(value)


def _cast_undefined(operation: Operation, arguments: list[Any]) -> Array | None:
    value = arguments[0]
    try:
        info = np.iinfo(operation.output_types[0])
    except ValueError:  # a four-bit type, which NumPy lacks
        return _out_of_range(operation, arguments)
    with np.errstate(invalid="ignore"):
        return np.asarray(~((np.trunc(value) >= float(info.min)) & (np.trunc(value) <= float(info.max))))


def _modulo(operation: Operation, main: list[Any], outputs: list[Any], noisy: list[Any]) -> list[Any]:
    """X - q y with the quotient of the main run."""
    del operation
    with np.errstate(all="ignore"):
        quotient = np.rint((main[0] - outputs[0]) / main[1])
        return [np.where(np.isfinite(quotient), noisy[0] - quotient * noisy[1], outputs[0])]


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


_COMPARED = Jump(when=_real_first)
_PLAIN = Jump(when=_real_first)
_QUANTIZED = Jump(inner=4.0)
JUMPS = {
    "Floor": _PLAIN,
    "Ceil": _PLAIN,
    "Round": _PLAIN,
    "Sign": _PLAIN,
    "Less": _COMPARED,
    "LessOrEqual": _COMPARED,
    "Greater": _COMPARED,
    "GreaterOrEqual": _COMPARED,
    "Equal": _COMPARED,
    "NonZero": _PLAIN,
    "Unique": _PLAIN,
    "NonMaxSuppression": _PLAIN,
    "OneHot": _PLAIN,
    "Cast": Jump(when=_to_integer, undefined=_cast_undefined),
    "CastLike": Jump(when=_to_integer, undefined=_cast_undefined),
    "Mod": Jump(when=_real_first, continuous=_modulo),
    "Shrink": Jump(when=_real_first, continuous=_gated),
    "ThresholdedRelu": Jump(when=_real_first, continuous=_gated),
    "GridSample": Jump(when=_nearest),
    "QuantizeLinear": _QUANTIZED,
    "DynamicQuantizeLinear": _QUANTIZED,
    "QLinearConv": _QUANTIZED,
    "QLinearMatMul": _QUANTIZED,
    "QLinearAdd": _QUANTIZED,
    "ArgMax": Jump(when=_real_first, selection=Selection(_axis_of(0), lambda _: True)),
    "ArgMin": Jump(when=_real_first, selection=Selection(_axis_of(0), lambda _: False)),
    "Hardmax": Jump(when=_real_first, selection=Selection(_axis_of(-1), lambda _: True)),
    "TopK": Jump(
        when=_real_first,
        selection=Selection(
            _axis_of(-1), lambda op: bool(op.attributes.get("largest", 1)), values=0, indices=1, first_of_ties=True
        ),
    ),
}

_CONTRACTIONS: dict[str, Terms] = {
    "MatMul": _inner, "Gemm": _inner, "FusedMatMul": _inner, "MatMulInteger": _inner, "Conv": _filter_terms,
    "ConvTranspose": _filter_terms, "FusedConv": _filter_terms, "ReduceSum": _reduced_terms,
    "ReduceMean": _reduced_terms, "CumSum": _summed_so_far,
}  # fmt: skip

ONNX = Dialect(
    selects=lambda operation: bool(getattr(operation, "selects", False)),
    contractions=_CONTRACTIONS,
    means=frozenset({"ReduceMean"}),
    pools=frozenset({"AveragePool", "GlobalAveragePool"}),
    composite=_COMPOSITE,
    derived={"Resize": _with_scales},
    softmax=frozenset({"Softmax", "LogSoftmax", "Attention", "MultiHeadAttention"}),
    absolute={
        "LogSoftmax": 4.0, "SoftmaxCrossEntropyLoss": 4.0, "ReduceLogSumExp": 4.0, "GRU": 8.0, "LSTM": 8.0, "RNN": 8.0,
    },
    additive=frozenset({"Add", "Sub"}),
    correctly_rounded=frozenset(
        {"Add", "Sub", "Mul", "Div", "Sqrt", "Reciprocal", "MatMul", "Gemm", "Conv", "ReduceSum", "Sum", "Cast",
         "CastLike", "CumSum", "Pow"}
    ),
    jumps=JUMPS,
)  # fmt: skip
