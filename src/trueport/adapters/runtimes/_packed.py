"""Types that NumPy lacks, as the plain bytes in which runtimes take and give them; `ml_dtypes` names them."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

Array = NDArray[Any]

_HALF_BYTE = frozenset({"int4", "uint4"})


def to_storage(value: Array) -> Array:
    """Returns the bytes of an array of a type that NumPy lacks: two numbers a byte for 4-bit types, the first one low.

    Shape and dtype: as the array, with `uint16` or `uint8`; one axis for 4-bit types.
    """
    if value.dtype.name in _HALF_BYTE:
        flat = value.reshape(-1).astype(np.int8).view(np.uint8) & 0xF
        padded = np.append(flat, np.zeros(flat.size % 2, np.uint8))
        return np.asarray(padded[0::2] | (padded[1::2] << 4))
    return value.view(np.uint16 if value.dtype.itemsize == 2 else np.uint8)


def from_storage(raw: Array, element_type: int, shape: tuple[int, ...]) -> Array:
    """Returns the array whose bytes these are.

    Args:
        raw: as `to_storage` makes it.
        element_type: ONNX's number of the type.
        shape: of the array.
    """
    dtype = onnx.helper.tensor_dtype_to_np_dtype(element_type)
    if dtype.name not in _HALF_BYTE:
        return np.asarray(raw.view(dtype).reshape(shape))
    octets = raw.reshape(-1).view(np.uint8)
    numbers = np.stack([octets & 0xF, octets >> 4], axis=1).reshape(-1)[: int(np.prod(shape, dtype=np.int64))]
    if dtype.name == "int4":
        numbers = np.where(numbers > 7, numbers.astype(np.int16) - 16, numbers)
    return np.asarray(numbers.astype(np.int8).astype(dtype).reshape(shape))
