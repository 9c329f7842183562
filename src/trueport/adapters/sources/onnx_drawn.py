"""An example drawn from what a model declares, for models that come without one."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from trueport.adapters.sources.onnx_values import numpy_type
from trueport.adapters.sources.wording import choices
from trueport.core.domain import Domain
from trueport.core.errors import UsageError
from trueport.inputs.confined import drawn_within, typed, within
from trueport.inputs.spec import is_float_type, is_integer_type
from trueport.onnxgraph.interface import Interface, ValueInfo
from trueport.onnxgraph.shapes import symbol_of
from trueport.onnxgraph.size_hints import size_hints

Array = NDArray[Any]

MOST_ELEMENTS = 2**28
"""Of one drawn input."""
BATCH, CHANNELS, PIXELS, LENGTH = 2, 3, 32, 8
"""Sizes of dynamic axes of which nothing is known: the first, the second and the others of an image, any other."""
_TEXTS = ("a", "b", "A word", "")
_MOST_INTEGER = 9
_ELEMENTS = 2


def sizes_for(
    model: onnx.ModelProto,
    interface: Interface,
    shapes: Mapping[str, Sequence[int]],
    *,
    batch: int = BATCH,
    times: int = 1,
    inner: bool = False,
) -> dict[str, int]:
    """Returns symbol -> size for every dynamic axis of the inputs.

    Args:
        model: gives hints, such as the weights of a convolution for the number of channels.
        interface: of the model.
        shapes: shapes that the user gives, by input; a symbol in them has their size everywhere.
        batch: size of a first axis of which nothing is known.
        inner: whether the second axis of three is the batch too, as in the state of a recurrent operator.
        times: by how much lengths and images of which nothing is known are larger than usual.

    Raises:
        UsageError: a shape contradicts the declaration, names no input, or gives a symbol two sizes.
    """
    sizes = _given_sizes(interface, shapes)
    hints = size_hints(model)
    for info in _tensors(interface):
        dims = _symbolic(info)
        for axis, dim in enumerate(dims or ()):
            if isinstance(dim, str) and (hint := hints.get((info.name, axis))) is not None:
                sizes.setdefault(dim, hint)
    for info in _tensors(interface):
        dims = _symbolic(info)
        for axis, dim in enumerate(dims or ()):
            if isinstance(dim, str):
                sizes.setdefault(dim, _guess(dim, axis, len(dims or ()), batch, times, inner=inner))
    return sizes


def drawn_values(
    interface: Interface,
    domains: Mapping[str, Domain],
    sizes: Mapping[str, int],
    shapes: Mapping[str, Sequence[int]],
    seed: int,
) -> dict[str, Any]:
    """Returns a value for every input that has no initializer; each depends on the seed and its place only.

    Args:
        interface: of the model.
        domains: which values inputs may hold.
        sizes: symbol -> size.
        shapes: by input, for those whose rank is not declared.
        seed: of the draws.

    Raises:
        UsageError: an input is of a kind that cannot be drawn, or has too many elements.
    """
    values: dict[str, Any] = {}
    for number, info in enumerate(interface.inputs):
        rng = np.random.default_rng([seed, 0x6F6E, number])
        domain = domains.get(info.name)
        if info.form.may_be_absent and info.element is None:
            values[info.name] = None
        elif info.form.is_sequence and info.element is not None:
            parts = range(_ELEMENTS)
            values[info.name] = [drawn(info.element, domain, sizes, shapes.get(info.name), rng) for _ in parts]
        else:
            values[info.name] = drawn(info.element or info, domain, sizes, shapes.get(info.name), rng)
    return values


def drawn(
    info: ValueInfo,
    domain: Domain | None,
    sizes: Mapping[str, int],
    shape: Sequence[int] | None,
    rng: np.random.Generator,
) -> Array:
    """Returns one tensor of the declared type and shape within its domain."""
    if not info.dtype:
        raise UsageError(
            f"expected input '{info.name}' to be a tensor of a known type, got {info.form}; "
            "give its value with --inputs"
        )
    wanted = tuple(shape) if shape is not None else _shape(info, domain, sizes)
    if math.prod(wanted) > MOST_ELEMENTS:
        raise UsageError(
            f"expected at most {MOST_ELEMENTS} elements in input '{info.name}' to be drawn, got shape {list(wanted)}; "
            "give a smaller one with --input-shape, or the values with --inputs"
        )
    dtype = numpy_type(info.dtype)
    if domain is not None and domain.fixed:
        return _setting(domain, wanted, dtype, sizes)
    return _values(domain, wanted, dtype, sizes, rng)


def _values(
    domain: Domain | None, shape: tuple[int, ...], dtype: np.dtype[Any], sizes: Mapping[str, int],
    rng: np.random.Generator,
) -> Array:  # fmt: skip
    if dtype.kind == "O":
        return np.asarray(rng.choice(np.array(_TEXTS, object), size=shape), object)
    if dtype.kind == "b":
        return np.asarray(rng.random(shape) < 0.7)
    if dtype.kind == "c":
        return np.asarray(rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)
    covering = drawn_within(domain, shape, dtype, sizes, rng) if domain is not None else None
    if covering is not None:
        return covering
    if is_integer_type(dtype):
        high = 255 if dtype.name == "uint8" else 1 if dtype.itemsize == 1 and dtype.kind == "V" else _MOST_INTEGER
        values: Array = np.asarray(rng.integers(0, high, size=shape, endpoint=True))
    else:
        assert is_float_type(dtype)
        values = np.asarray(rng.standard_normal(shape))
        if domain is not None and domain.low is not None:
            values = domain.low + np.abs(values)
        elif domain is not None and domain.high is not None:
            values = domain.high - np.abs(values)
    held = typed(values, dtype)
    return within(held, domain, sizes) if domain is not None else held


def _setting(domain: Domain, shape: tuple[int, ...], dtype: np.dtype[Any], sizes: Mapping[str, int]) -> Array:
    """Returns the default of a setting in its shape; ones where the default is of another length."""
    default = [sizes.get(v, 1) if isinstance(v, str) else v for v in domain.default or ()]
    count = math.prod(shape)
    if len(default) != count:
        default = (default * count)[:count] if len(default) == 1 else [1] * count
    return np.asarray(default, np.float64).astype(dtype).reshape(shape)


# ---------------------------------------------------------------------- sizes


def _tensors(interface: Interface) -> list[ValueInfo]:
    return [v.element or v for v in (*interface.inputs, *interface.optional)]


def _symbolic(info: ValueInfo) -> tuple[int | str, ...] | None:
    """Returns the dimensions with a symbol for each one that is not declared."""
    if info.dims is None:
        return None
    named = enumerate(info.dims)
    return tuple(symbol_of(info.name, i) if d is None or d == -1 else d for i, d in named)


def _shape(info: ValueInfo, domain: Domain | None, sizes: Mapping[str, int]) -> tuple[int, ...]:
    dims = _symbolic(info)
    if dims is None:
        known = domain.default if domain is not None and domain.fixed else None
        return (len(known),) if known else (BATCH, LENGTH)
    if domain is not None and domain.fixed and domain.default and len(dims) == 1 and isinstance(dims[0], str):
        return (len(domain.default),)
    return tuple(sizes[d] if isinstance(d, str) else d for d in dims)


def _guess(symbol: str, axis: int, rank: int, batch: int, times: int, *, inner: bool) -> int:
    if axis == 0 or "batch" in symbol.lower() or (inner and (axis, rank) == (1, 3)):
        return batch
    if rank in (4, 5):
        return CHANNELS if axis == 1 else PIXELS * times
    return LENGTH * times


def _given_sizes(interface: Interface, shapes: Mapping[str, Sequence[int]]) -> dict[str, int]:
    infos = {info.name: info for info in _tensors(interface)}
    sizes: dict[str, int] = {}
    for name, shape in shapes.items():
        if name not in infos:
            raise UsageError(
                f"--input-shape names '{name}', which is no input of the model{choices(name, infos, 'its inputs are')}"
            )
        if not all(isinstance(size, int) and not isinstance(size, bool) and size >= 0 for size in shape):
            raise UsageError(f"expected the sizes of --input-shape {name} to be integers >= 0, got {list(shape)}")
        dims = _symbolic(infos[name])
        if dims is None:
            continue
        if len(dims) != len(shape) or any(isinstance(d, int) and d != s for d, s in zip(dims, shape, strict=True)):
            raise UsageError(
                f"expected --input-shape {name} to fit the declared [{','.join(map(str, dims))}], got {list(shape)}"
            )
        for dim, size in zip(dims, shape, strict=True):
            if isinstance(dim, str) and sizes.setdefault(dim, size) != size:
                raise UsageError(f"expected one size for '{dim}' in --input-shape, got {sizes[dim]} and {size}")
    return sizes


__all__ = ["drawn", "drawn_values", "sizes_for"]
