"""Whether an operator that IEEE 754 rounds correctly rounds at all on these operands.

Operands and result that are numbers of the type prove it for one product or one sum of two. A longer sum may round on
its way and end at a number of the type all the same, as that of four equal terms can: it is exact in whatever order
only where every partial sum is a number of the type.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueport.adapters.float64.replay.dialect import Dialect
from trueport.adapters.float64.replay.operation import Operation
from trueport.oracle.units import FloatType, real_dtype

Array = NDArray[Any]


def rounds_nothing(
    operation: Operation, arguments: Sequence[Any], value: Array, kind: FloatType, dialect: Dialect, unit: float
) -> bool:
    """Returns whether the result is exact however a correctly rounding kernel orders its sums.

    Args:
        operation: what was computed.
        arguments: its operands; those of floating point as float64.
        value: its result, float64.
        kind: the declared type of the result.
        dialect: which operators are sums.
        unit: unit roundoff of the type in which partial sums are held.
    """
    if value.dtype.kind != "f" or kind.name == "float64":
        return False  # in float64 itself a rounded result looks like an exact one
    operands = [a for a in arguments if is_float(a)]
    with np.errstate(all="ignore"):
        if not all(bool(((_held(v, kind.name) == v) | np.isnan(v)).all()) for v in (value, *operands)):
            return False
        contracts = operation.operator in dialect.contractions
        if not contracts and not (operation.operator in dialect.composite and len(operands) > 2):
            return True
        return _sums_exactly(operation, arguments, value, operands, unit, products=contracts)


def is_float(value: Any) -> bool:
    """Returns whether this is an operand of floating point."""
    return isinstance(value, np.ndarray) and value.dtype == np.float64


def _held(values: Array, dtype: str) -> Array:
    """Returns the values as the type holds them."""
    return np.asarray(values.astype(real_dtype(dtype)).astype(np.float64))


def _sums_exactly(
    operation: Operation,
    arguments: Sequence[Any],
    value: Array,
    operands: Sequence[Array],
    unit: float,
    *,
    products: bool,
) -> bool:
    """Whether each element is one term, or all partial sums are multiples of a number that is not too small for them.

    Terms that are multiples of q add up exactly in any order where their magnitudes add up to at most q / u.
    """
    if any(operation.attributes.get(name, 1.0) != 1.0 for name in ("alpha", "beta")):
        return False
    quanta = [_quantum(a) for a in operands]
    quantum = min([quanta[0] * quanta[1], *quanta[2:]]) if products and len(quanta) > 1 else min(quanta)
    exact = (_applied(operation, arguments, np.abs) * unit <= quantum) | ~np.isfinite(value)
    if not exact.all():
        terms = _applied(operation, arguments, lambda a: (a != 0).astype(np.float64))
        exact |= terms <= (2 if len(operands) == 1 else 1)
    return bool(exact.all())


def _applied(operation: Operation, arguments: Sequence[Any], change: Callable[[Array], Array]) -> Array:
    return np.asarray(operation.apply([change(a) if is_float(a) else a for a in arguments])[0])


def _quantum(values: Array) -> float:
    """Returns the largest power of two of which all values are multiples; infinity where none is finite and not 0."""
    numbers = values[np.isfinite(values) & (values != 0)]
    if numbers.size == 0:
        return float("inf")
    fraction, exponent = np.frexp(numbers)
    digits = np.abs(fraction * 2.0**53).astype(np.int64)
    return float(np.ldexp((digits & -digits).astype(np.float64), exponent - 53).min())
