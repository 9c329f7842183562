"""Whether two tensors hold the same numbers, however they are stored, and how far they are apart."""

from __future__ import annotations

import hashlib

import numpy as np
import onnx
from onnx import numpy_helper

from trueport.core.errors import UsageError
from trueport.onnxgraph.contents import check_tensor, type_name


def content_key(tensor: onnx.TensorProto) -> bytes:
    """Returns bytes that are equal for tensors of equal type, shape and bits; their names do not count.

    External data is not read: such tensors are equal where they point at the same place.
    """
    digest = hashlib.blake2b(repr((tensor.data_type, tuple(tensor.dims))).encode(), digest_size=20)
    digest.update(_content(tensor))
    return digest.digest()


def described_tensor(tensor: onnx.TensorProto) -> str:
    """Returns type and shape, and the values where they are few: `int64[2] = 1, -1`."""
    try:
        check_tensor(tensor)
        kind = type_name(tensor).lower()
    except UsageError:
        return f"a damaged tensor of type {tensor.data_type}"
    text = f"{kind}{list(tensor.dims)}"
    array = _array(tensor)
    if array is None or array.size > 8:
        return text
    return f"{text} = {', '.join(str(value)[:40] for value in array.ravel().tolist())}"


def largest_difference(before: onnx.TensorProto, after: onnx.TensorProto) -> float | None:
    """Returns the largest distance between elements; inf where one is NaN or infinite and the other is not the same.

    None stands for tensors that have no distance: other shapes, texts, contents that cannot be read.
    """
    one, other = _array(before), _array(after)
    if one is None or other is None or one.shape != other.shape or "O" in (one.dtype.kind, other.dtype.kind):
        return None
    if one.size == 0:
        return 0.0
    if one.dtype == other.dtype and one.dtype.kind in "iu":
        return float((np.maximum(one, other).astype(np.uint64) - np.minimum(one, other).astype(np.uint64)).max())
    wide = np.complex128 if "c" in (one.dtype.kind, other.dtype.kind) else np.float64
    one, other = one.astype(wide), other.astype(wide)
    same = (one == other) | (np.isnan(one) & np.isnan(other))
    with np.errstate(invalid="ignore", over="ignore"):
        distance = np.where(same, 0.0, np.abs(one - other))
    return float(np.where(np.isnan(distance), np.inf, distance).max())


def _content(tensor: onnx.TensorProto) -> bytes:
    if tensor.data_location == onnx.TensorProto.EXTERNAL:
        return repr(sorted((entry.key, entry.value) for entry in tensor.external_data)).encode()
    if tensor.HasField("raw_data"):
        raw: bytes = tensor.raw_data
        return raw
    array = _array(tensor)
    if array is None:
        return _nameless(tensor)
    if array.dtype.kind == "O":
        return repr([bytes(text) for text in tensor.string_data]).encode()
    content: bytes = array.tobytes()
    return content


def _nameless(tensor: onnx.TensorProto) -> bytes:
    """What a damaged tensor has stored, whatever that is."""
    plain = onnx.TensorProto()
    plain.CopyFrom(tensor)
    plain.name = plain.doc_string = ""
    content: bytes = plain.SerializeToString(deterministic=True)
    return content


def _array(tensor: onnx.TensorProto) -> np.ndarray | None:
    """Returns the values, or None where they are elsewhere or are not what the tensor says."""
    if tensor.data_location == onnx.TensorProto.EXTERNAL:
        return None
    try:
        check_tensor(tensor)
        return np.asarray(numpy_helper.to_array(tensor))
    except (UsageError, ValueError, TypeError, KeyError):
        return None
