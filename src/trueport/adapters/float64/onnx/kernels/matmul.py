"""Matrix products and determinants."""

from __future__ import annotations

import numpy as np

from trueport.adapters.float64.onnx.dtypes import Array
from trueport.adapters.float64.onnx.kernels.pytorch import product
from trueport.adapters.float64.onnx.registry import Call, kernel


@kernel("MatMul")
def matmul(call: Call, a: Array, b: Array) -> Array:
    """Returns the matrix product, as NumPy defines it."""
    del call
    return product(a, b)


@kernel("Gemm")
def gemm(call: Call, a: Array, b: Array, c: Array | None = None) -> Array:
    """Returns alpha A' B' + beta C."""
    alpha, beta = call.attributes.get("alpha", 1.0), call.attributes.get("beta", 1.0)
    left = a.T if call.attributes.get("transA", 0) else a
    right = b.T if call.attributes.get("transB", 0) else b
    result = product(left, right)
    if alpha != 1.0:
        result = result * alpha
    if c is not None:
        result = result + (c if beta == 1.0 else beta * c)
    return np.asarray(result).astype(a.dtype, copy=False)


@kernel("Einsum")
def einsum(call: Call, *operands: Array) -> Array:
    """Returns the sum of products that the equation describes."""
    return np.asarray(np.einsum(call.attributes["equation"], *operands, optimize=True))


@kernel("MatMulInteger")
def matmul_integer(call: Call, a: Array, b: Array, a_zero: Array | None = None, b_zero: Array | None = None) -> Array:
    """Returns the int32 product of two integer matrices less their zero points."""
    del call
    left, right = a.astype(np.int32), b.astype(np.int32)
    if a_zero is not None:
        left = left - (a_zero.astype(np.int32)[..., None] if a_zero.ndim == 1 and a_zero.size > 1 else a_zero)
    if b_zero is not None:
        right = right - b_zero.astype(np.int32)
    return np.asarray(np.matmul(left, right)).astype(np.int32, copy=False)


@kernel("Det")
def determinant(call: Call, x: Array) -> Array:
    """Returns the determinant of each matrix."""
    del call
    return np.asarray(np.linalg.det(x))
