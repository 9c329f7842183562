"""Types that NumPy lacks, as the plain bytes in which runtimes take and give them; `ml_dtypes` names them."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

Array = NDArray[Any]

BITS = {"int4": 4, "uint4": 4, "float4_e2m1fn": 4, "int2": 2, "uint2": 2}
"""Types of which several share a byte, by NumPy-style name, with their width."""


def nbytes(dtype: np.dtype[Any], count: int) -> int:
    """Returns how many bytes `count` numbers of a type take in a runtime."""
    bits = BITS.get(dtype.name, 8 * dtype.itemsize)
    return (count * bits + 7) // 8


def to_storage(value: Array) -> Array:
    """Returns the bytes of an array of a type that NumPy lacks: narrower numbers share a byte, the first one low.

    Shape and dtype: as the array, with `uint16` or `uint8`; one axis for types narrower than a byte.
    """
    bits = BITS.get(value.dtype.name)
    if bits is None:
        return value.view(np.uint16 if value.dtype.itemsize == 2 else np.uint8)
    shared = 8 // bits
    flat = np.ascontiguousarray(value).reshape(-1).view(np.uint8) & (2**bits - 1)
    padded = np.append(flat, np.zeros(-flat.size % shared, np.uint8)).reshape(-1, shared)
    return np.asarray(np.bitwise_or.reduce(padded << (bits * np.arange(shared, dtype=np.uint8)), axis=1))


def from_storage(raw: Array, element_type: int, shape: tuple[int, ...]) -> Array:
    """Returns the array whose bytes these are.

    Args:
        raw: as `to_storage` makes it.
        element_type: ONNX's number of the type.
        shape: of the array.
    """
    dtype = onnx.helper.tensor_dtype_to_np_dtype(element_type)
    bits = BITS.get(dtype.name)
    if bits is None:
        return np.asarray(raw.view(dtype).reshape(shape))
    octets = raw.reshape(-1, 1).view(np.uint8) >> (bits * np.arange(8 // bits, dtype=np.uint8))
    numbers = (octets & (2**bits - 1)).reshape(-1)[: int(np.prod(shape, dtype=np.int64))]
    if dtype.name.startswith("float"):
        return np.asarray(numbers.view(dtype).reshape(shape))
    signed = numbers.astype(np.int8)
    if dtype.name.startswith("int"):
        signed = np.where(signed >= 2 ** (bits - 1), signed - 2**bits, signed)
    return np.asarray(signed.astype(np.int8).astype(dtype).reshape(shape))
