"""TensorFlow's operators as far as rounding and decisions are concerned."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from numpy.typing import NDArray

from trueport.adapters.float64.replay.dialect import Dialect, Jump, Selection, Terms
from trueport.adapters.float64.replay.jumps import CAST, PLAIN, REMAINDER, takes_real
from trueport.adapters.float64.replay.operation import Operation
from trueport.adapters.float64.replay.terms import reduced, summed_so_far

Array = NDArray[Any]


def _inner(operation: Operation, arguments: list[Any], value: Array) -> int:
    del value
    first = arguments[0]
    axis = -2 if operation.attributes.get("transpose_a") or operation.attributes.get("adj_x") else -1
    return int(first.shape[axis]) if first.ndim > 1 else 1


def _filter(operation: Operation, arguments: list[Any], value: Array) -> int:
    del operation, value
    return int(math.prod(arguments[1].shape[:-1]))


def _depthwise(operation: Operation, arguments: list[Any], value: Array) -> int:
    del operation, value
    return int(math.prod(arguments[1].shape[:-2]))


def _transposed(operation: Operation, arguments: list[Any], value: Array) -> int:
    del operation, value
    return int(math.prod(arguments[1].shape[:-2]) * arguments[1].shape[-1])


def _window(operation: Operation, arguments: list[Any], value: Array) -> int:
    del arguments, value
    return int(math.prod(operation.attributes["ksize"]))


_CONTRACTIONS: dict[str, Terms] = {
    "MatMul": _inner, "BatchMatMul": _inner, "BatchMatMulV2": _inner, "BatchMatMulV3": _inner, "Conv2D": _filter,
    "Conv3D": _filter, "DepthwiseConv2dNative": _depthwise, "Sum": reduced, "Mean": reduced,
    "Cumsum": summed_so_far, "UnsortedSegmentSum": reduced, "SegmentSum": reduced,
    "AvgPool": _window, "AvgPool3D": _window,
}  # fmt: skip
_COMPOSITE = frozenset(
    {"FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3", "LRN", "L2Loss", "Einsum", "Conv2DBackpropInput",
     "Conv3DBackpropInputV2", "DepthwiseConv2dNativeBackpropInput", "ResizeBilinear", "ResizeBicubic",
     "ScaleAndTranslate", "CropAndResize", "EuclideanNorm", "MatrixDeterminant", "MatrixInverse", "Cholesky",
     "Softplus", "FFT", "RFFT", "IFFT", "IRFFT", "FFT2D", "RFFT2D", "SegmentMean", "Prod", "AddN", "SquaredDifference",
     "BlockLSTM", "LSTMBlockCell", "GRUBlockCell", "Betainc", "Igamma"}
)  # fmt: skip
_SELECTING = frozenset(
    {"Relu", "Relu6", "Maximum", "Minimum", "Max", "Min", "MaxPool", "MaxPoolV2", "MaxPool3D", "MaxPoolWithArgmax",
     "GatherV2", "Gather", "GatherNd", "Reshape", "Transpose", "ConcatV2", "Concat", "Slice", "StridedSlice", "Pack",
     "Unpack", "Split", "SplitV", "Pad", "PadV2", "MirrorPad", "Tile", "BroadcastTo", "ExpandDims", "Squeeze", "Abs",
     "Neg", "Identity", "StopGradient", "Select", "SelectV2", "Where", "Reverse", "ReverseV2", "ReverseSequence",
     "SpaceToDepth", "DepthToSpace", "SpaceToBatchND", "BatchToSpaceND", "Floor", "Ceil", "Round", "Rint", "Sign",
     "ZerosLike", "OnesLike", "Fill", "ClipByValue", "ResizeNearestNeighbor", "TopKV2", "OneHot", "MatrixBandPart",
     "MatrixDiagV3", "MatrixDiagPartV3", "ReadVariableOp", "Const", "Placeholder", "TensorListGetItem",
     "TensorListStack", "TensorListFromTensor", "ScatterNd", "TensorScatterUpdate", "InvertPermutation", "Roll",
     "UnsortedSegmentMax", "UnsortedSegmentMin", "SegmentMax", "SegmentMin", "DynamicStitch", "DynamicPartition"}
)  # fmt: skip


def _selects(operation: Operation) -> bool:
    return operation.operator in _SELECTING


def _last_axis(operation: Operation, arguments: list[Any]) -> int:
    del operation, arguments
    return -1


def _given_axis(operation: Operation, arguments: list[Any]) -> int:
    del operation
    return int(arguments[1])


def _always(answer: bool) -> Callable[[Operation], bool]:
    return lambda _: answer


JUMPS = {
    **dict.fromkeys(
        ("Floor", "Ceil", "Round", "Rint", "Sign", "Less", "LessEqual", "Greater", "GreaterEqual", "Equal", "NotEqual",
         "FloorDiv", "ApproximateEqual", "Bucketize", "Unique", "UniqueV2", "Where", "NonMaxSuppressionV3",
         "NonMaxSuppressionV4", "NonMaxSuppressionV5"),
        PLAIN,
    ),
    "Cast": CAST,
    "FloorMod": REMAINDER,
    "Mod": REMAINDER,
    "TruncateMod": REMAINDER,
    "ArgMax": Jump(when=takes_real, selection=Selection(_given_axis, _always(True))),
    "ArgMin": Jump(when=takes_real, selection=Selection(_given_axis, _always(False))),
    "TopKV2": Jump(when=takes_real, selection=Selection(_last_axis, _always(True), values=0, indices=1)),
    "TopK": Jump(when=takes_real, selection=Selection(_last_axis, _always(True), values=0, indices=1)),
}  # fmt: skip

TENSORFLOW = Dialect(
    selects=_selects,
    contractions=_CONTRACTIONS,
    means=frozenset({"Mean", "AvgPool", "AvgPool3D"}),
    composite=_COMPOSITE,
    softmax=frozenset({"Softmax"}),
    absolute={"LogSoftmax": 4.0, "SparseSoftmaxCrossEntropyWithLogits": 4.0, "SoftmaxCrossEntropyWithLogits": 4.0},
    additive=frozenset({"Add", "AddV2", "Sub", "BiasAdd"}),
    correctly_rounded=frozenset(
        {"Add", "AddV2", "Sub", "Mul", "RealDiv", "Div", "DivNoNan", "MulNoNan", "Sqrt", "Reciprocal", "MatMul",
         "BatchMatMulV2", "Conv2D", "Sum", "AddN", "Cast", "Cumsum", "Square", "BiasAdd", "Pow", "SquaredDifference"}
    ),
    jumps=JUMPS,
)  # fmt: skip
