"""The inputs of a TensorFlow subject as the engines draw them, with their domains and dynamic axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueport.adapters.sources.requested_axes import requested_axis
from trueport.adapters.sources.tensorflow_domains import input_domains
from trueport.adapters.sources.tensorflow_source import TensorFlowSource
from trueport.core.options import DynamicAxis as RequestedAxis
from trueport.core.subject import Subject
from trueport.inputs.spec import DynamicAxis, LeafSpec

Array = NDArray[Any]


def tensorflow_leaves(subject: Subject, requested: Sequence[RequestedAxis] = ()) -> list[LeafSpec]:
    """Returns the tensor inputs with the values of the first example, in the order of the function.

    Raises:
        UsageError: a requested axis is not there, or the function declares a fixed size for it.
    """
    source: TensorFlowSource = subject.model
    domains = input_domains(source)
    axes = tensorflow_axes(subject, requested)
    values = subject.examples[0].kwargs
    return [
        LeafSpec(
            i.name, np.asarray(values[i.name]), {a.axis: a for a in axes if a.input == i.name}, domains.get(i.name)
        )
        for i in source.inputs
    ]


def tensorflow_axes(subject: Subject, requested: Sequence[RequestedAxis] = ()) -> list[DynamicAxis]:
    """Returns the axes of any size; those that the user asked for replace them.

    First axes are one batch and vary together. Other axes vary together where they have the same place and, in the
    first example, the same size: token ids and their mask.

    Raises:
        UsageError: a requested axis is not there, or the function declares a fixed size for it.
    """
    source: TensorFlowSource = subject.model
    shapes = {name: np.shape(value) for name, value in subject.examples[0].kwargs.items()}
    declared = []
    symbols: dict[int, list[int]] = {}
    for info in source.inputs:
        sizes = shapes[info.name]
        dims = info.shape if info.shape is not None else (None,) * len(sizes)
        for axis, dim in enumerate(dims):
            if dim is None:
                known = symbols.setdefault(axis, [])
                if sizes[axis] not in known:
                    known.append(sizes[axis])
                declared.append(DynamicAxis(info.name, axis, _symbol(axis, known.index(sizes[axis]))))
    return (
        declared
        if not requested
        else [
            requested_axis(item, declared, shapes, who="the function", advice="; declare None there")
            for item in requested
        ]
    )


def tensorflow_given(subject: Subject) -> list[tuple[Array, ...]]:
    """Returns the further examples, each in the order of `tensorflow_leaves`."""
    names = [info.name for info in subject.model.inputs]
    return [tuple(np.asarray(e.kwargs[name]) for name in names) for e in subject.examples[1:]]


def _symbol(axis: int, number: int) -> str:
    name = "batch" if axis == 0 else f"axis{axis}"
    return name if number == 0 else f"{name}_{number + 1}"
