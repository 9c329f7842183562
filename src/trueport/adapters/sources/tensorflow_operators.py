"""Which TensorFlow operators stay inside a model, and which may touch files, the network or Python.

An allow-rule: whatever keeps state, by TensorFlow's own word, is refused unless it is listed here. Operators without
state that reach out all the same are listed the other way round; a test goes over the whole registry for new ones.
"""

from __future__ import annotations

from typing import Any

_VARIABLES = frozenset(
    {
        "VarHandleOp", "ReadVariableOp", "AssignVariableOp", "AssignAddVariableOp", "AssignSubVariableOp",
        "VarIsInitializedOp", "DestroyResourceOp", "VariableShape", "DisableCopyOnRead", "ResourceGather",
        "ResourceGatherNd", "ResourceStridedSliceAssign", "ResourceCountUpTo", "Variable", "VariableV2",
        "TemporaryVariable",
    }
)  # fmt: skip
_CONTROL = frozenset(
    {"StatefulPartitionedCall", "If", "While", "Case", "Assert", "Print", "CheckNumerics", "CheckNumericsV2",
     "GuaranteeConst", "Empty", "DeepCopy", "DeviceIndex", "Timestamp"}
)  # fmt: skip
_RANDOM = frozenset(
    {
        "RandomUniform", "RandomUniformInt", "RandomStandardNormal", "TruncatedNormal", "ParameterizedTruncatedNormal",
        "RandomShuffle", "RandomCrop", "RandomGamma", "RandomPoisson", "RandomPoissonV2", "Multinomial",
        "SampleDistortedBoundingBox", "SampleDistortedBoundingBoxV2", "NonDeterministicInts", "RngSkip",
        "RngReadAndSkip", "StatelessRandomGetAlg", "StatefulUniform", "StatefulUniformInt", "StatefulUniformFullInt",
        "StatefulStandardNormal", "StatefulStandardNormalV2", "StatefulTruncatedNormal", "StatefulRandomBinomial",
        "UniformCandidateSampler", "LogUniformCandidateSampler", "ThreadUnsafeUnigramCandidateSampler",
        "LearnedUnigramCandidateSampler", "AllCandidateSampler",
    }
)  # fmt: skip
_TABLES = frozenset(
    {
        "HashTable", "HashTableV2", "AnonymousHashTable", "MutableHashTable", "MutableHashTableV2",
        "AnonymousMutableHashTable", "MutableHashTableOfTensors", "MutableHashTableOfTensorsV2",
        "AnonymousMutableHashTableOfTensors", "MutableDenseHashTable", "MutableDenseHashTableV2",
        "AnonymousMutableDenseHashTable", "InitializeTableV2", "LookupTableFindV2", "LookupTableInsertV2",
        "LookupTableImportV2", "LookupTableExportV2", "LookupTableSizeV2", "LookupTableRemoveV2",
    }
)  # fmt: skip
_LISTS = frozenset(
    {
        "TensorArray", "TensorArrayV2", "TensorArrayV3", "TensorArrayGrad", "TensorArrayGradV2", "TensorArrayGradV3",
        "TensorArrayGradWithShape", "TensorArrayWriteV3", "TensorArrayReadV3", "TensorArrayGatherV3",
        "TensorArrayScatterV3", "TensorArrayConcatV3", "TensorArraySplitV3", "TensorArraySizeV3", "TensorArrayCloseV3",
        "Stack", "StackV2", "StackPushV2", "StackPopV2", "StackCloseV2",
    }
)  # fmt: skip
_RECURRENT = frozenset(
    {"CudnnRNN", "CudnnRNNV2", "CudnnRNNV3", "CudnnRNNBackprop", "CudnnRNNBackpropV2", "CudnnRNNBackpropV3"}
)
STAYS_INSIDE = _VARIABLES | _CONTROL | _RANDOM | _TABLES | _LISTS | _RECURRENT
"""Operators with state that hold or change nothing but what belongs to the model, in memory."""
_INSIDE_FAMILIES = ("ResourceApply", "ResourceSparseApply", "ResourceScatter")
REACHES_OUT = frozenset(
    {
        "ReadFile", "MatchingFiles", "InitializeTableFromTextFile", "GenerateVocabRemapping", "ImmutableConst",
        "PyFuncStateless", "DebugIdentity", "DebugNanCount", "DebugNumericSummary", "Copy", "CopyHost", "CacheDataset",
        "SnapshotDataset", "SnapshotDatasetV2", "SnapshotDatasetReader", "SnapshotNestedDatasetReader",
        "SnapshotChunkDataset", "RegisterDataset", "RegisterDatasetV2", "DatasetFromGraph", "MlirPassthroughOp",
        "ReaderRead", "ReaderReadUpTo", "Abort",
    }
)  # fmt: skip
"""Operators without state that read files, run what a string says, send values to an address, or end the process.

TensorFlow runs operators without state while it merely loads a graph, to learn shapes: these must not be in a file.
"""
_STREAMS = frozenset({"", "stdout", "stderr", "log(info)", "log(warning)", "log(error)"})
_PROTO_SOURCES = ("local://", "bytes://")


def reaches_out_at_once(node: Any) -> bool:
    """Tells whether a node may reach out even where no run gets to it, as TensorFlow may fold it when it loads.

    Args:
        node: a `NodeDef`.
    """
    if node.op in ("DecodeProtoV2", "EncodeProto"):
        source = _text(node, "descriptor_source")
        return source is None or not (source == "" or source.startswith(_PROTO_SOURCES))
    return node.op in REACHES_OUT


def may_reach_out(node: Any) -> bool:
    """Tells whether a node may touch more than the model's own memory when it runs.

    Operators that this TensorFlow does not know cannot run, and are left to its own message.

    Args:
        node: a `NodeDef`.
    """
    from tensorflow.python.framework import op_def_registry

    if node.op == "PrintV2":
        return _text(node, "output_stream") not in _STREAMS
    if node.op in STAYS_INSIDE or node.op.startswith(_INSIDE_FAMILIES):
        return False
    definition = op_def_registry.get(node.op)
    return reaches_out_at_once(node) or (definition is not None and definition.is_stateful)


def _text(node: Any, attribute: str) -> str | None:
    """Returns a string attribute, empty for its default; None where only a caller says what it is."""
    if attribute not in node.attr:
        return ""
    value = node.attr[attribute]
    return value.s.decode(errors="replace") if value.WhichOneof("value") == "s" else None
