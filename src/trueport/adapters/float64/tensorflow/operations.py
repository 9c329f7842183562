"""One TensorFlow node executed eagerly: with every floating-point type attribute promoted, or in its own types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray
from tensorflow.core.framework import tensor_shape_pb2, types_pb2
from tensorflow.python.eager import context, execute
from tensorflow.python.framework import kernels as registered_kernels

from trueport.adapters.float64.onnx.dtypes import LIMITS
from trueport.adapters.float64.onnx.saturation import saturate
from trueport.adapters.float64.tensorflow.arithmetic import ARITHMETIC, applies
from trueport.adapters.float64.tensorflow.kernels import KERNELS
from trueport.core.errors import ToolError

Array = NDArray[Any]

NARROW = frozenset({tf.float16, tf.bfloat16, tf.float32})
_COMPLEX = frozenset({tf.complex64})
_PASSES = frozenset({"Identity", "StopGradient", "PreventGradient", "Snapshot", "CheckNumerics", "EnsureShape"})
_EXECUTION_ERRORS = (tf.errors.OpError, ValueError, TypeError)


class GraphOperation:
    """A node of a TensorFlow graph; an `Operation` for those that follow a run.

    Args:
        node: the `tf.Operation`.
    """

    nested = False

    def __init__(self, node: Any) -> None:
        self.node = node
        self.operator: str = node.type
        self.label: str = node.name
        self.inputs: tuple[str, ...] = tuple(tensor.name for tensor in node.inputs)
        self.outputs: tuple[str, ...] = tuple(tensor.name for tensor in node.outputs)
        self.output_types: tuple[str, ...] = tuple(type_name(tensor.dtype) for tensor in node.outputs)

    @cached_property
    def coarse(self) -> bool:
        """Whether TensorFlow has no float64 kernel for it and neither have we: it is computed in its own types."""
        floats = any(t.dtype in NARROW | _COMPLEX for t in (*self.node.inputs, *self.node.outputs))
        return floats and self.operator not in KERNELS and self.operator not in _PASSES and not _has_double(self.node)

    @cached_property
    def source(self) -> str:
        """`file.py:LINE` of the innermost line that is not TensorFlow's or Keras's, or ''."""
        for frame in reversed(list(self.node.traceback or ())):
            filename = getattr(frame, "filename", "")
            if filename and not any(part in filename for part in _FRAMEWORK_PATHS):
                return f"{Path(filename).name}:{frame.lineno}"
        return ""

    @cached_property
    def attributes(self) -> Mapping[str, Any]:
        """Its attributes as plain values; functions, shapes and tensors are left out."""
        found = {}
        for name, value in self.node.node_def.attr.items():
            kind = value.WhichOneof("value")
            if kind in ("b", "i", "f"):
                found[name] = getattr(value, kind)
            elif kind == "s":
                found[name] = value.s.decode("utf-8", "replace")
            elif kind == "list" and (value.list.i or value.list.f):
                found[name] = list(value.list.i or value.list.f)
        return found

    def apply(self, arguments: Sequence[Any]) -> tuple[Any, ...]:
        """Returns its outputs in float64, infinite beyond the range of their own type."""
        if self.operator in _PASSES:
            return (arguments[0],)
        if self.operator in KERNELS or applies(self.operator, tuple(arguments)):
            kernel = KERNELS.get(self.operator) or ARITHMETIC[self.operator]
            with np.errstate(all="ignore"):
                outputs = kernel(self.attributes, *arguments)
            results = outputs if isinstance(outputs, tuple) else (outputs,)
        elif self.coarse:
            results = tuple(widened(value) for value in self._apply_real(arguments))
        else:
            results = self._execute(arguments, promote=True)
        return tuple(_bounded(value, dtype) for value, dtype in zip(results, self.output_types, strict=False))

    def _apply_real(self, arguments: Sequence[Any]) -> tuple[Any, ...]:
        """Returns what TensorFlow computes in the node's own types from the arguments rounded to theirs."""
        narrow = [_rounded(value, tensor.dtype) for value, tensor in zip(arguments, self.node.inputs, strict=True)]
        return self._execute(narrow, promote=False)

    def _execute(self, arguments: Sequence[Any], *, promote: bool) -> tuple[Any, ...]:
        tensors = [value if isinstance(value, tf.Tensor) else tf.constant(value) for value in arguments]
        try:
            with tf.device("/CPU:0"):
                results = execute.execute(
                    self.operator, len(self.outputs), tensors, self._attributes(promote=promote), context.context()
                )
        except _EXECUTION_ERRORS as error:
            raise ToolError(f"node '{self.label}' ({self.operator}) cannot be evaluated: {error}") from error
        return tuple(as_array(value) for value in results)

    def _attributes(self, *, promote: bool) -> tuple[Any, ...]:
        """Returns names and values in turn, as the eager runtime takes them."""
        held: dict[bool, tuple[Any, ...]] = self.__dict__.setdefault("_given", {})
        if promote not in held:
            pairs = ((name, self.node.get_attr(name)) for name in self.node.node_def.attr if not name.startswith("_"))
            held[promote] = tuple(
                item for name, value in pairs for item in (name, _eager(_promoted(value) if promote else value))
            )
        return held[promote]


_FRAMEWORK_PATHS = ("/tensorflow/", "/keras/", "/tf_keras/", "/tf2onnx/", "/trueport/", "importlib", "<frozen")


def type_name(dtype: tf.DType) -> str:
    """Returns NumPy's name of a type; '' for what NumPy cannot hold (resources, variants)."""
    if dtype in (tf.resource, tf.variant):
        return ""
    return "object" if dtype == tf.string else str(np.dtype(dtype.as_numpy_dtype).name)


def as_array(value: Any) -> Any:
    """Returns the array of an eager tensor, floating-point types as they are; what is no array stays a tensor."""
    if isinstance(value, tf.Tensor) and value.dtype not in (tf.resource, tf.variant):
        return value.numpy() if value.shape.rank else np.asarray(value.numpy())
    return value


def widened(value: Any) -> Any:
    """Returns floating-point arrays in float64, complex ones in complex128; everything else as it is."""
    if not isinstance(value, np.ndarray):
        return value
    if value.dtype.kind == "f" or value.dtype.name == "bfloat16":
        return value.astype(np.float64, copy=False)
    return value.astype(np.complex128) if value.dtype.kind == "c" else value


def _rounded(value: Any, dtype: tf.DType) -> Any:
    if isinstance(value, np.ndarray) and dtype in NARROW | _COMPLEX:
        with np.errstate(all="ignore"):
            return value.astype(dtype.as_numpy_dtype)
    return value


def _bounded(value: Any, dtype: str) -> Any:
    held = widened(value)
    limits = LIMITS.get(dtype)
    return held if limits is None or not isinstance(held, np.ndarray) else saturate(held, limits)


def _promoted(value: Any) -> Any:
    if isinstance(value, list):
        return [_promoted(item) for item in value]
    if isinstance(value, tf.DType):
        return tf.float64 if value in NARROW else tf.complex128 if value in _COMPLEX else value
    return value


def _eager(value: Any) -> Any:
    """Returns an attribute as the eager runtime takes it: types as numbers, shapes as lists."""
    if isinstance(value, list):
        return [_eager(item) for item in value]
    if isinstance(value, tf.DType):
        return value.as_datatype_enum
    if isinstance(value, tensor_shape_pb2.TensorShapeProto):
        return None if value.unknown_rank else [dim.size for dim in value.dim]
    return value


def _has_double(node: Any) -> bool:
    """Whether TensorFlow has a CPU kernel for this node with its floating-point attributes promoted."""
    wanted = {}
    for attribute in node.op_def.attr:
        if attribute.type != "type":
            continue
        value = node.get_attr(attribute.name)
        promoted = _promoted(value)
        if promoted != value:
            wanted[attribute.name] = promoted.as_datatype_enum
            allowed = attribute.allowed_values.list.type
            if allowed and promoted.as_datatype_enum not in allowed:
                return False
    if _fixed_float(node):
        return False
    found = registered_kernels.get_registered_kernels_for_op(node.type).kernel
    fitting = [k for k in found if k.device_type in ("CPU", "DEFAULT")]
    return any(_accepts(kernel, wanted) for kernel in fitting)


def _fixed_float(node: Any) -> bool:
    """Whether an output is float32 whatever the attributes say."""
    return any(argument.type == types_pb2.DT_FLOAT for argument in node.op_def.output_arg)


def _accepts(kernel: Any, wanted: Mapping[str, int]) -> bool:
    for constraint in kernel.constraint:
        if constraint.name in wanted:
            types = constraint.allowed_values.list.type
            if types and wanted[constraint.name] not in types:
                return False
    return True
