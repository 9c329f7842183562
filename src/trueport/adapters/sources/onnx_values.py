"""Whether values that a user gives are what an input of an ONNX model takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueport.adapters.sources.wording import choices, described, listed
from trueport.core.errors import UsageError
from trueport.inputs.spec import is_float_type
from trueport.onnxgraph.interface import Interface, ValueInfo

Array = NDArray[Any]


def fitted(values: Mapping[str, Any], interface: Interface, where: str) -> dict[str, Any]:
    """Returns the values in the order of the model's inputs: arrays, lists of arrays for sequences, None for absent.

    Args:
        values: by name of the input; those that have an initializer or may be absent can be left out. Names as
            `numpy.savez` gives them without names (`arr_0`) stand for the inputs in order.
        interface: of the model.
        where: the place for messages.

    Raises:
        UsageError: a name is unknown or missing, or a value is of another kind, type or shape than declared.
    """
    required = [v.name for v in interface.inputs]
    if values and all(name == f"arr_{i}" for i, name in enumerate(values)) and "arr_0" not in required:
        values = in_order(tuple(values.values()), interface, where)
    declared = {v.name: v for v in (*interface.inputs, *interface.optional)}
    unknown = [name for name in values if name not in declared]
    if unknown:
        raise UsageError(
            f"{where} gives '{unknown[0]}', which is no input of the model"
            f"{choices(unknown[0], declared, 'its inputs are')}"
        )
    missing = [v.name for v in interface.inputs if v.name not in values and not v.form.may_be_absent]
    if missing:
        raise UsageError(f"{where} gives {listed(values)}, but the model also takes {listed(missing)}")
    absent = {v.name: None for v in interface.inputs if v.name not in values}
    given = {**values, **absent}
    return {name: _value(given[name], info, where) for name, info in declared.items() if name in given}


def in_order(values: Sequence[Any], interface: Interface, where: str) -> dict[str, Any]:
    """Returns values by name that are given in the order of the inputs, those that have an initializer last.

    Raises:
        UsageError: there are more values than inputs.
    """
    names = [v.name for v in (*interface.inputs, *interface.optional)]
    if len(values) > len(names):
        raise UsageError(f"{where} gives {len(values)} values, but the model takes {listed(names)}")
    return dict(zip(names, values, strict=False))


def _value(value: Any, info: ValueInfo, where: str) -> Any:
    if value is None and info.form.may_be_absent:
        return None
    if info.form.is_sequence:
        if not isinstance(value, list | tuple):
            raise UsageError(f"expected '{info.name}' of {where} to be a list of arrays, got {described(value)}")
        return [_array(item, info.element or info, where) for item in value]
    return _array(value, info.element or info, where)


def _array(value: Any, info: ValueInfo, where: str) -> Array:
    if hasattr(value, "detach"):
        value = value.detach().cpu()
    if not (hasattr(value, "__array__") or isinstance(value, bool | int | float | complex | str | list)):
        raise UsageError(f"expected '{info.name}' of {where} to be an array, got {described(value)}")
    try:
        array = _typed(np.asarray(value), info, plain=not hasattr(value, "__array__"))
    except ValueError as error:
        raise UsageError(
            f"expected '{info.name}' of {where} to be an array, got {described(value)}: {error}"
        ) from error
    if info.dtype and array.dtype.name != info.dtype:
        raise UsageError(
            f"expected '{info.name}' of {where} to be of the declared type {info.dtype}, got {described(array)}; "
            f"convert it with .astype({info.dtype!r})"
        )
    dims = info.dims
    if dims is not None and (
        len(dims) != array.ndim
        or any(isinstance(d, int) and d not in (s, -1) for d, s in zip(dims, array.shape, strict=True))
    ):
        raise UsageError(f"expected '{info.name}' of {where} to have the declared shape [{_shown(dims)}], "
                         f"got {described(array)}")  # fmt: skip
    return array


def _typed(array: Array, info: ValueInfo, *, plain: bool) -> Array:
    """Returns the array in the declared type where only NumPy, and not the user, decided for another one."""
    if not info.dtype or array.dtype.name == info.dtype:
        return array
    if info.dtype == "object":
        return array.astype(object) if array.dtype.kind in "US" else array
    dtype = numpy_type(info.dtype)
    if array.dtype.type is np.void and array.dtype.names is None and array.dtype.itemsize == dtype.itemsize:
        return array.view(dtype)  # an archive keeps the bytes of a bfloat16 and forgets their meaning
    if dtype.kind == "V" and array.dtype.kind == ("f" if is_float_type(dtype) else "i"):
        return array.astype(dtype)  # NumPy has no such type, so the user cannot write it
    if not plain or dtype.kind == "V" or not np.can_cast(array.dtype, dtype, "same_kind"):
        return array
    made = array.astype(dtype)
    return made if dtype.kind not in "iu" or np.array_equal(made, array) else array


def numpy_type(name: str) -> np.dtype[Any]:
    """Returns the NumPy type of this name; bfloat16, float8 and the types below a byte come from `ml_dtypes`."""
    try:
        return np.dtype(name)
    except TypeError:
        import ml_dtypes

        found: np.dtype[Any] = np.dtype(getattr(ml_dtypes, name))
        return found


def _shown(dims: Sequence[int | str | None]) -> str:
    return ",".join("?" if d is None else str(d) for d in dims)
