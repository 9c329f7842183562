"""Input sets of a TensorFlow source: the user's, or drawn from what the function declares."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueport.adapters.sources.input_sets import examples_of_each, examples_of_option
from trueport.adapters.sources.npz_arrays import numpy_arrays_from_npz
from trueport.adapters.sources.registry import SourceRequest
from trueport.adapters.sources.tensorflow_domains import input_domains
from trueport.adapters.sources.tensorflow_setup import import_tensorflow
from trueport.adapters.sources.tensorflow_source import SourceInput, TensorFlowSource
from trueport.adapters.sources.wording import choices, described
from trueport.core.domain import Domain
from trueport.core.errors import UsageError
from trueport.core.subject import Example
from trueport.inputs.confined import typed, within
from trueport.inputs.spec import is_float_type, is_integer_type

Array = NDArray[Any]
BATCH, PIXELS, LENGTH = 2, 32, 8
"""Sizes of axes of any size: the first one, those of an image, any other."""
MOST_ELEMENTS = 2**28
_MOST_INTEGER = 9
_FORMS = "a dict of arrays by input name, a tuple in the order of the inputs, or a list of several of these"


@dataclass(frozen=True)
class Call:
    """The arguments of one call of a model.

    Attributes:
        args: by position.
        kwargs: by the name of the parameter, whatever their order.
    """

    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]


def choose_examples(source: TensorFlowSource, given: Any, request: SourceRequest, where: str) -> tuple[Example, ...]:
    """Returns at least one example; each holds every input by name as a NumPy array.

    `--inputs` comes first, then what the source itself gives, then values drawn from the declared types and shapes.
    `--input-shape` replaces the inputs that it names.

    Args:
        source: the function.
        given: what came with it, in the forms of `examples_of`, or None.
        request: what the user asked for.
        where: `given`, for messages.

    Raises:
        UsageError: inputs do not fit what the function takes, or cannot be drawn.
    """
    _check_shapes(source, request.input_shapes)
    if request.inputs is not None:
        examples = _from_option(request, source)
    elif given is not None:
        examples = examples_of(given, source, where)
    else:
        examples = (Example(kwargs=drawn(source, request.input_shapes, request.seed)),)
    if request.input_shapes:
        fresh = drawn(source, request.input_shapes, request.seed)
        redrawn = {name: fresh[name] for name in request.input_shapes}
        examples = tuple(replace(e, kwargs={**e.kwargs, **redrawn}) for e in examples)
    return examples


def examples_of(value: Any, source: TensorFlowSource, where: str) -> tuple[Example, ...]:
    """Returns the examples that a user wrote in Python.

    Args:
        value: a dict of arrays by input name, a tuple in the order of the inputs, one array, a `Call`, or a list of
            several.
        source: the function.
        where: the place for messages.

    Raises:
        UsageError: it has none of these forms, or does not fit what the function takes.
    """

    def one(item: Any, place: str, label: str) -> Example:
        return Example(kwargs=_one(item, source, place), label=label)

    return examples_of_each(value, where, one)


def has_input_form(value: Any) -> bool:
    """Tells whether a value looks like inputs: tensors or arrays somewhere, in one of the accepted forms."""
    if isinstance(value, list):
        return bool(value) and all(not isinstance(item, list) and has_input_form(item) for item in value)
    leaves = import_tensorflow().nest.flatten(value)
    return isinstance(value, tuple | Mapping) or any(hasattr(leaf, "__array__") for leaf in leaves)


def drawn(source: TensorFlowSource, shapes: Mapping[str, Sequence[int]], seed: int) -> dict[str, Array]:
    """Returns a value for every input; each depends on the seed and its place only.

    Raises:
        UsageError: an input is too large, or holds text.
    """
    domains = input_domains(source)
    values = {}
    for number, info in enumerate(source.inputs):
        shape = tuple(shapes[info.name]) if info.name in shapes else default_shape(info)
        if math.prod(shape) > MOST_ELEMENTS:
            raise UsageError(f"expected at most {MOST_ELEMENTS} elements in input '{info.name}' to be drawn, got shape "
                             f"{list(shape)}; give the values with --inputs")  # fmt: skip
        rng = np.random.default_rng([seed, 0x7466, number])
        values[info.name] = _values(info, shape, domains.get(info.name), rng)
    return values


def default_shape(info: SourceInput) -> tuple[int, ...]:
    """Returns the shape of a drawn input: declared sizes, and small ones for the axes of any size."""
    dims = info.shape if info.shape is not None else (None, None)
    sizes = []
    for axis, dim in enumerate(dims):
        guess = BATCH if axis == 0 else PIXELS if len(dims) in (4, 5) else LENGTH
        sizes.append(dim if dim is not None else guess)
    return tuple(sizes)


def _values(info: SourceInput, shape: tuple[int, ...], domain: Domain | None, rng: np.random.Generator) -> Array:
    dtype = info.dtype
    if dtype.kind == "b":
        return np.asarray(rng.random(shape) < 0.7)
    if dtype.kind == "c":
        return np.asarray(rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)
    if is_integer_type(dtype):
        high = 255 if dtype.name == "uint8" else _MOST_INTEGER
        low = 0
        if domain is not None and domain.high is not None:
            low, high = int(domain.low or 0), int(domain.high)
        held = typed(np.asarray(rng.integers(low, high, size=shape, endpoint=True)), dtype)
    elif is_float_type(dtype):
        held = typed(np.asarray(rng.standard_normal(shape)), dtype)
    else:
        raise UsageError(f"expected input '{info.name}' to hold numbers, got {dtype}; give its value with --inputs")
    return within(held, domain, {}) if domain is not None else held


def _one(value: Any, source: TensorFlowSource, where: str) -> dict[str, Array]:
    names = [info.name for info in source.inputs]
    if isinstance(value, Mapping) and not set(value) <= set(names):
        if set(value) <= set(source.function.function_type.parameters):
            value = Call((), value)
        elif _is_structure(value, source):
            value = (value,)
    if isinstance(value, Mapping):
        return _fitted({str(name): item for name, item in value.items()}, source, where)
    if isinstance(value, Call):
        leaves = _arrays(_ordered(value, source, where))
    elif isinstance(value, tuple):
        leaves = _arrays(value)
    elif _is_array(value):
        leaves = [value]
    else:
        raise UsageError(f"expected {where} to be {_FORMS}; got {described(value)}")
    if len(leaves) != len(names):
        held = (value.args, value.kwargs) if isinstance(value, Call) else value
        raise UsageError(
            f"expected {where} to hold {len(names)} tensors ({', '.join(names)}), got {len(leaves)}: {described(held)}"
        )
    return _fitted(dict(zip(names, leaves, strict=True)), source, where)


def _ordered(call: Call, source: TensorFlowSource, where: str) -> list[Any]:
    """Returns the arguments in the order of the inputs: positional parameters, then the others by name."""
    if not call.kwargs:
        return list(call.args)
    try:
        bound = source.function.function_type.bind(*call.args, **call.kwargs)
    except TypeError as error:
        raise UsageError(f"expected {where} to fit the parameters of the function; {error}") from error
    parameters = source.function.function_type.parameters.values()
    named = sorted(p.name for p in parameters if p.kind is p.KEYWORD_ONLY)
    placed = [p.name for p in parameters if p.kind is not p.KEYWORD_ONLY]
    return [bound.arguments[name] for name in (*placed, *named) if name in bound.arguments]


def _is_structure(value: Mapping[str, Any], source: TensorFlowSource) -> bool:
    """Tells whether a dict has the keys of the one structured argument that a model takes."""
    args, _ = source.function.structured_input_signature
    taken = args[0] if len(args) == 1 else getattr(source.owner, "_inputs_struct", None)
    return isinstance(taken, Mapping) and set(taken) == set(value)


def _arrays(structure: Any) -> list[Any]:
    return [leaf for leaf in import_tensorflow().nest.flatten(structure) if _is_array(leaf)]


def _is_array(value: Any) -> bool:
    return hasattr(value, "__array__") and hasattr(value, "dtype")


def _fitted(values: Mapping[str, Any], source: TensorFlowSource, where: str) -> dict[str, Array]:
    infos = {info.name: info for info in source.inputs}
    unknown = [name for name in values if name not in infos]
    if unknown:
        raise UsageError(
            f"{where}: the model has no input '{unknown[0]}'{choices(unknown[0], infos, 'its inputs are')}"
        )
    missing = [name for name in infos if name not in values]
    if missing:
        raise UsageError(f"expected {where} to give the input '{missing[0]}'; it gives {', '.join(values) or 'none'}")
    return {name: _checked(np.asarray(values[name]), infos[name], where) for name in infos}


def _checked(array: Array, info: SourceInput, where: str) -> Array:
    fits = info.shape is None or (
        len(info.shape) == array.ndim
        and all(dim is None or dim == size for dim, size in zip(info.shape, array.shape, strict=True))
    )
    if array.dtype != info.dtype or not fits:
        dims = "*" if info.shape is None else ", ".join("?" if d is None else str(d) for d in info.shape)
        raise UsageError(
            f"expected {where} to give {info.dtype}[{dims}] for input '{info.name}', got {described(array)}"
        )
    return array


def _from_option(request: SourceRequest, source: TensorFlowSource) -> tuple[Example, ...]:
    def of_arrays(path: str) -> tuple[Example, ...]:
        return (Example(kwargs=_fitted(numpy_arrays_from_npz(path, allowed="biufcV"), source, f"'{path}'")),)

    return examples_of_option(
        str(request.inputs),
        request.seed,
        of_arrays=of_arrays,
        of_value=lambda value, where: examples_of(value, source, where),
    )


def _check_shapes(source: TensorFlowSource, shapes: Mapping[str, Sequence[int]]) -> None:
    infos = {info.name: info for info in source.inputs}
    for name, shape in shapes.items():
        if name not in infos:
            raise UsageError(
                f"--input-shape names '{name}', which is no input of the model{choices(name, infos, 'its inputs are')}"
            )
        dims = infos[name].shape
        if dims is None:
            continue
        if len(dims) != len(shape) or any(d is not None and d != s for d, s in zip(dims, shape, strict=True)):
            wanted = ",".join("?" if d is None else str(d) for d in dims)
            raise UsageError(f"expected --input-shape {name} to fit the declared [{wanted}], got {list(shape)}")
