"""Chooses the input sets of an ONNX source: the user's, those beside the file, or drawn ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from trueport.adapters.sources.input_sets import examples_of_each, examples_of_option
from trueport.adapters.sources.npz_arrays import numpy_arrays_from_npz
from trueport.adapters.sources.onnx_drawn import drawn, drawn_values, sizes_for
from trueport.adapters.sources.onnx_test_case import examples_beside
from trueport.adapters.sources.onnx_values import fitted, in_order
from trueport.adapters.sources.registry import SourceRequest
from trueport.adapters.sources.wording import described
from trueport.core.errors import UsageError
from trueport.core.subject import Example
from trueport.onnxgraph.domains import input_domains
from trueport.onnxgraph.interface import Interface, read_interface

DRAWN = "drawn"
"""Label of an example that nobody gave."""
_LARGEST_DEFAULT = 4096
_TIMES = (1, 4, 16, 64, 256)
_LARGEST_GUESS = 2**22
_FIRST_IR_WITH_DEFAULTS = 4
_FORMS = "a dict of arrays by input name, a tuple in the order of the inputs, or a list of several of these"


def choose_examples(
    model: onnx.ModelProto, feeds: Any, path: Path | None, request: SourceRequest, where: str
) -> tuple[Example, ...]:
    """Returns at least one example; each holds every input of the source by name, in the order of the model.

    `--inputs` comes first, then `feeds`, then the test cases beside the file, then values drawn from the declared
    types and shapes. `--input-shape` replaces the inputs that it names in all of them. An input that has an
    initializer has its value where nothing else is given; large ones are left out, because they are weights, and so
    are those of files older than IR version 4, where every initializer is an input and none may be replaced.

    Args:
        model: with its data.
        feeds: what the source itself gives, in the forms of `examples_of`, or None.
        path: the file of the model, or None.
        request: what the user asked for.
        where: `feeds`, for messages.

    Raises:
        UsageError: inputs do not fit the model, or cannot be drawn.
    """
    interface = read_interface(model)
    if request.inputs is not None:
        examples = _from_option(request.inputs, interface, request.seed)
    elif feeds is not None:
        examples = examples_of(feeds, interface, where)
    else:
        examples = examples_beside(path, interface) if path is not None else ()
    domains = input_domains(model)
    if not examples:
        sizes = sizes_for(model, interface, request.input_shapes)
        examples = (_drawn_example(model, interface, request, sizes),)
    elif request.input_shapes:
        sizes_for(model, interface, request.input_shapes)  # refuses what does not fit
        redrawn = _redrawn(interface, domains, request)
        examples = tuple(replace(e, kwargs={**e.kwargs, **redrawn}) for e in examples)
    return _completed(model, interface, examples)


def larger_examples(model: onnx.ModelProto, request: SourceRequest) -> Iterator[tuple[Example, ...]]:
    """Yields drawn examples with a batch of one, whose guessed lengths are larger and larger; none without guesses.

    A model that cuts its input into windows refuses the few elements that are drawn at first, and one whose state is
    declared for one sequence refuses two of them; nothing else in the file says what it needs.

    Args:
        model: with its data.
        request: what the user asked for; shapes given there stay as they are.
    """
    interface = read_interface(model)
    tried = [sizes_for(model, interface, request.input_shapes)]
    for times, inner in product(_TIMES, (False, True)):
        sizes = sizes_for(model, interface, request.input_shapes, batch=1, times=times, inner=inner)
        if sizes in tried:
            continue
        tried.append(sizes)
        example = _drawn_example(model, interface, request, sizes)
        if sum(np.size(value) for value in example.kwargs.values() if value is not None) > _LARGEST_GUESS:
            return
        yield _completed(model, interface, (example,))


def _drawn_example(
    model: onnx.ModelProto, interface: Interface, request: SourceRequest, sizes: Mapping[str, int]
) -> Example:
    values = drawn_values(interface, input_domains(model), sizes, request.input_shapes, request.seed)
    return Example(kwargs=values, label=DRAWN)


def _completed(model: onnx.ModelProto, interface: Interface, examples: Iterable[Example]) -> tuple[Example, ...]:
    """Returns the examples with the defaults of inputs that have one, in the order of the model."""
    defaults = _defaults(model, interface)
    names = [v.name for v in (*interface.inputs, *interface.optional)]
    completed = []
    for example in examples:
        known = {**defaults, **example.kwargs}
        completed.append(replace(example, kwargs={name: known[name] for name in names if name in known}))
    return tuple(completed)


def examples_of(value: Any, interface: Interface, where: str) -> tuple[Example, ...]:
    """Returns the examples that a user wrote in Python.

    Args:
        value: a dict of arrays by input name, a tuple in the order of the inputs, one array, or a list of several.
        interface: of the model.
        where: the place for messages.

    Raises:
        UsageError: it has none of these forms, or does not fit the model.
    """

    def one(item: Any, place: str, label: str) -> Example:
        return Example(kwargs=_one(item, interface, place), label=label)

    return examples_of_each(value, where, one)


def _one(value: Any, interface: Interface, where: str) -> dict[str, Any]:
    if isinstance(value, Mapping):
        return fitted({str(name): item for name, item in value.items()}, interface, where)
    if isinstance(value, tuple):
        return fitted(in_order(value, interface, where), interface, where)
    if hasattr(value, "__array__"):
        return fitted(in_order((value,), interface, where), interface, where)
    raise UsageError(f"expected {where} to be {_FORMS}; got {described(value)}")


def _from_option(option: str, interface: Interface, seed: int) -> tuple[Example, ...]:
    def of_arrays(path: str) -> tuple[Example, ...]:
        arrays = numpy_arrays_from_npz(path, allowed="biufcVU")
        return (Example(kwargs=fitted(_with_sequences(arrays, interface), interface, f"'{path}'")),)

    return examples_of_option(
        option, seed, of_arrays=of_arrays, of_value=lambda value, where: examples_of(value, interface, where)
    )


def _with_sequences(arrays: Mapping[str, Any], interface: Interface) -> dict[str, Any]:
    """Returns the arrays with those called `s.0`, `s.1` collected into the list of the sequence input `s`."""
    left = dict(arrays)
    for info in interface.inputs:
        if info.form.is_sequence and info.name not in left:
            parts: list[Any] = []
            while f"{info.name}.{len(parts)}" in left:
                parts.append(left.pop(f"{info.name}.{len(parts)}"))
            if parts or not info.form.may_be_absent:
                left[info.name] = parts
    return left


def _redrawn(interface: Interface, domains: Mapping[str, Any], request: SourceRequest) -> dict[str, Any]:
    infos = {v.name: v for v in (*interface.inputs, *interface.optional)}
    made = {}
    for number, (name, shape) in enumerate(request.input_shapes.items()):
        info = infos[name]
        if info.form.is_sequence:
            raise UsageError(f"--input-shape names '{name}', which is a sequence; give its value with --inputs")
        rng = np.random.default_rng([request.seed, 0x7368, number])
        made[name] = drawn(info.element or info, domains.get(name), {}, shape, rng)
    return made


def _defaults(model: onnx.ModelProto, interface: Interface) -> dict[str, Any]:
    if model.ir_version < _FIRST_IR_WITH_DEFAULTS:
        return {}
    wanted = {v.name for v in interface.optional}
    return {
        tensor.name: onnx.numpy_helper.to_array(tensor)
        for tensor in model.graph.initializer
        if tensor.name in wanted and np.prod(tensor.dims, dtype=np.float64) <= _LARGEST_DEFAULT
    }
