"""Whether the bytes of a tensor are as many as its shape says, found without reading or allocating anything."""

from __future__ import annotations

import math
from collections.abc import Sequence

import onnx

from trueport.core.errors import UsageError

MOST_ELEMENTS = 2**33
"""Of one tensor: more fit into no memory here, and are a mistake or an attack."""

_FIELDS = {
    "FLOAT": "float_data",
    "COMPLEX64": "float_data",
    "DOUBLE": "double_data",
    "COMPLEX128": "double_data",
    "INT64": "int64_data",
    "UINT32": "uint64_data",
    "UINT64": "uint64_data",
    "STRING": "string_data",
}
"""Type -> the field of single values; every other type has `int32_data`."""


def check_tensor(tensor: onnx.TensorProto) -> None:
    """Raises where a tensor cannot be what it says; external data is not looked at.

    Raises:
        UsageError: unknown type, impossible shape, or another number of values than the shape has.
    """
    count = elements(tensor.dims, f"tensor '{tensor.name}'")
    name = type_name(tensor)
    if tensor.data_location == onnx.TensorProto.EXTERNAL:
        return
    if tensor.HasField("raw_data"):
        expected, found, unit = size_bytes(tensor), len(tensor.raw_data), "bytes"
        if name == "STRING":
            raise UsageError(f"expected the texts of tensor '{tensor.name}' in string_data, got raw_data")
    else:
        field = _FIELDS.get(name, "int32_data")
        expected, found, unit = _values(name, count), len(getattr(tensor, field)), f"values in {field}"
    if expected != found:
        raise UsageError(
            f"expected {expected} {unit} for tensor '{tensor.name}' of {name.lower()}{list(tensor.dims)}, got {found}; "
            "the file is damaged, or was written by a tool that is wrong"
        )


def check_sparse(sparse: onnx.SparseTensorProto) -> None:
    """Raises where a sparse tensor cannot be made dense.

    Raises:
        UsageError: its shape is impossible, or its indices are not as many as its values.
    """
    name = sparse.values.name
    elements(sparse.dims, f"sparse tensor '{name}'")
    values, rank = math.prod(sparse.values.dims), len(sparse.dims)
    allowed = ([values], [values, rank])
    if list(sparse.indices.dims) not in allowed:
        raise UsageError(
            f"expected the indices of sparse tensor '{name}' to have the shape [{values}] or [{values}, {rank}], "
            f"got {list(sparse.indices.dims)}"
        )


def elements(dims: Sequence[int], what: str) -> int:
    """Returns the number of elements of a shape.

    Raises:
        UsageError: a size is negative, or there are more elements than any memory holds.
    """
    if any(d < 0 for d in dims):
        raise UsageError(f"expected the sizes of {what} to be 0 or more, got {list(dims)}")
    count = math.prod(dims)
    if count > MOST_ELEMENTS:
        raise UsageError(f"expected at most {MOST_ELEMENTS} elements in {what}, got {count} by its sizes {list(dims)}")
    return count


def type_name(tensor: onnx.TensorProto) -> str:
    """Returns the name of a tensor's type as ONNX writes it.

    Raises:
        UsageError: the installed ONNX knows no such type.
    """
    known = onnx.TensorProto.DataType
    if tensor.data_type not in known.values() or tensor.data_type == onnx.TensorProto.UNDEFINED:
        raise UsageError(f"expected a type that ONNX {onnx.__version__} knows in tensor '{tensor.name}', "
                         f"got number {tensor.data_type}")  # fmt: skip
    return str(known.Name(tensor.data_type))


def size_bytes(tensor: onnx.TensorProto) -> int:
    """Returns how many bytes the values of a tensor take as raw data; types below a byte are packed."""
    count: int = math.prod(tensor.dims)
    return (count * _bits(type_name(tensor)) + 7) // 8


def _bits(name: str) -> int:
    if name == "BOOL":
        return 8
    if name == "STRING":
        return 0
    for end, bits in (("4E2M1", 4), ("6E2M3", 6), ("6E3M2", 6), ("UINT4", 4), ("INT4", 4), ("UINT2", 2), ("INT2", 2)):
        if name.endswith(end):
            return bits
    if name.startswith("FLOAT8"):
        return 8
    named = {"FLOAT": 32, "DOUBLE": 64}
    if name in named:
        return named[name]
    return int("".join(c for c in name if c.isdigit()))


def _values(name: str, count: int) -> int:
    """Returns how many entries the field of single values has."""
    if name.startswith("COMPLEX"):
        return 2 * count
    bits = _bits(name)
    return (count * bits + 7) // 8 if bits in (2, 4) else count  # 6 bits are not packed
