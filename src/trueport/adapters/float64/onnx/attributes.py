"""Attributes and constant tensors, read from their protos once."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import AttributeProto, TensorProto, numpy_helper

from trueport.adapters.float64.onnx.dtypes import NAMES, Array, promote
from trueport.core.errors import UsageError


@dataclass(frozen=True)
class Constant:
    """A floating-point constant of a model.

    Attributes:
        name: its key in `Float64Evaluator.constants`.
        dtype: declared element type, as a NumPy-style name.
        value: in that type, not promoted.
    """

    name: str
    dtype: str
    value: Array


def read_tensor(tensor: TensorProto, base_dir: str | None) -> Array:
    """Returns the tensor in its declared type.

    Raises:
        UsageError: its data lies outside the file and `base_dir` is None or does not contain it, or the data does
            not fit its declared shape.
    """
    if tensor.data_location == TensorProto.EXTERNAL:
        _check_external(tensor, base_dir)
    try:
        return np.asarray(numpy_helper.to_array(tensor, base_dir or ""))
    except (ValueError, TypeError, OSError, onnx.checker.ValidationError) as error:
        declared = f"{NAMES.get(tensor.data_type, '?')}{list(tensor.dims)}"
        raise UsageError(f"tensor '{tensor.name}' of type {declared} cannot be read: {error}") from error


def _check_external(tensor: TensorProto, base_dir: str | None) -> None:
    if base_dir is None:
        raise UsageError(
            f"tensor '{tensor.name}' keeps its data in another file: pass base_dir, the folder of the model file, "
            "or load the external data first"
        )
    location = next((entry.value for entry in tensor.external_data if entry.key == "location"), "")
    base = Path(base_dir).resolve()
    target = (base / location).resolve()
    if not location or not target.is_relative_to(base):
        raise UsageError(f"tensor '{tensor.name}' names external data outside the folder of the model: '{location}'")


def read_sparse(sparse: onnx.SparseTensorProto, base_dir: str | None) -> Array:
    """Returns a sparse tensor as a dense one in its declared type."""
    values = read_tensor(sparse.values, base_dir)
    indices = read_tensor(sparse.indices, base_dir).astype(np.int64)
    dense = np.zeros(math.prod(sparse.dims), dtype=values.dtype)
    flat = indices if indices.ndim == 1 else np.ravel_multi_index(tuple(indices.T), tuple(sparse.dims))
    dense[flat] = values
    return dense.reshape(tuple(sparse.dims))


def parse_attribute(attribute: AttributeProto, base_dir: str | None) -> Any:
    """Returns the value of an attribute as a Python value or array; graphs and types stay protos."""
    kind = attribute.type
    if kind == AttributeProto.TENSOR:
        return promote(read_tensor(attribute.t, base_dir))
    if kind == AttributeProto.TENSORS:
        return [promote(read_tensor(tensor, base_dir)) for tensor in attribute.tensors]
    if kind == AttributeProto.SPARSE_TENSOR:
        return promote(read_sparse(attribute.sparse_tensor, base_dir))
    value = onnx.helper.get_attribute_value(attribute)
    if kind == AttributeProto.STRING:
        return value.decode("utf-8", "replace")
    if kind == AttributeProto.STRINGS:
        return [text.decode("utf-8", "replace") for text in value]
    if kind in (AttributeProto.FLOATS, AttributeProto.INTS):
        return list(value)
    return value


def resolve_references(
    attributes: Iterable[AttributeProto], bound: Mapping[str, AttributeProto]
) -> dict[str, AttributeProto]:
    """Returns a node's attributes by name, with references to attributes of the enclosing function replaced.

    A reference to an attribute that the caller does not give is left out, as ONNX has it.
    """
    resolved: dict[str, AttributeProto] = {}
    for attribute in attributes:
        if not attribute.ref_attr_name:
            resolved[attribute.name] = attribute
        elif attribute.ref_attr_name in bound:
            resolved[attribute.name] = bound[attribute.ref_attr_name]
    return resolved


def constant_of_node(attributes: Mapping[str, AttributeProto], base_dir: str | None) -> tuple[str, Array]:
    """Returns declared element type and value (in that type) of a `Constant` node.

    Raises:
        UsageError: the node has no value.
    """
    for name, attribute in attributes.items():
        if name == "value":
            return NAMES[attribute.t.data_type], read_tensor(attribute.t, base_dir)
        if name == "sparse_value":
            sparse = attribute.sparse_tensor
            return NAMES[sparse.values.data_type], read_sparse(sparse, base_dir)
        if name in ("value_float", "value_floats"):
            return "float32", np.asarray(onnx.helper.get_attribute_value(attribute), dtype=np.float32)
        if name in ("value_int", "value_ints"):
            return "int64", np.asarray(onnx.helper.get_attribute_value(attribute), dtype=np.int64)
        if name in ("value_string", "value_strings"):
            return "str", np.asarray(parse_attribute(attribute, base_dir), dtype=object)
    raise UsageError("a Constant node has none of the attributes that give its value")
