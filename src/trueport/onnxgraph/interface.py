"""What an ONNX model takes and gives: names, types, sizes, and which of its inputs is which of the subject's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from trueport.core.errors import TrueportError

Array = NDArray[Any]


class InterfaceError(TrueportError):
    """The model cannot be fed with the subject's inputs."""


@dataclass(frozen=True)
class ValueInfo:
    """A declared input or output. A dimension is a number, a name, or None where nothing is declared."""

    name: str
    dtype: str
    dims: tuple[int | str | None, ...] | None


@dataclass(frozen=True)
class Interface:
    """Declared inputs (without initializers), outputs, opset of the default domain, doubly defined names."""

    inputs: tuple[ValueInfo, ...]
    outputs: tuple[ValueInfo, ...]
    opset: int
    duplicates: tuple[str, ...]

    def pair(self, leaf_names: Sequence[str], name_map: Mapping[str, str]) -> dict[str, int | None]:
        """Returns for each input of the model the number of the subject's leaf that belongs there.

        By the user's map first, then by name, then by position when all others are as many on both sides.
        """
        pairs: dict[str, int | None] = dict.fromkeys((v.name for v in self.inputs), None)
        position = {name: i for i, name in enumerate(leaf_names)}
        for name in pairs:
            wanted = name_map.get(name, name)
            pairs[name] = position.get(wanted)
        taken = {i for i in pairs.values() if i is not None}
        open_names = [name for name, i in pairs.items() if i is None]
        free = [i for i in range(len(leaf_names)) if i not in taken]
        if len(open_names) == len(free):
            pairs.update(zip(open_names, free, strict=True))
        return pairs

    def feeds(self, pairs: Mapping[str, int | None], arrays: Sequence[Array]) -> dict[str, Array]:
        """Returns the inputs by name.

        Raises:
            InterfaceError: a name is defined twice, an input has no counterpart, or a declared size does not fit.
        """
        if self.duplicates:
            raise InterfaceError(f"the model defines {', '.join(self.duplicates)} more than once")
        feeds = {}
        for value in self.inputs:
            index = pairs.get(value.name)
            if index is None:
                raise InterfaceError(f"input '{value.name}' of the model has no counterpart among the subject's inputs")
            array = np.asarray(arrays[index])
            self._fits(value, array)
            feeds[value.name] = array
        return feeds

    @staticmethod
    def _fits(value: ValueInfo, array: Array) -> None:
        if value.dtype and value.dtype != array.dtype.name:
            raise InterfaceError(
                f"input '{value.name}': the model declares {value.dtype}, the subject takes {array.dtype.name}"
            )
        if value.dims is None:
            return
        fixed = all(not isinstance(d, int) or d == s for d, s in zip(value.dims, array.shape, strict=False))
        if len(value.dims) != array.ndim or not fixed:
            declared = ",".join("?" if d is None else str(d) for d in value.dims)
            came = ",".join(map(str, array.shape))
            raise InterfaceError(f"input '{value.name}': the model declares [{declared}], got [{came}]")


def read_interface(model: onnx.ModelProto) -> Interface:
    """Returns the interface of a model."""
    initialized = {t.name for t in model.graph.initializer} | {s.values.name for s in model.graph.sparse_initializer}
    inputs = tuple(_value(v) for v in model.graph.input if v.name not in initialized)
    opset = next((o.version for o in model.opset_import if o.domain in ("", "ai.onnx")), 0)
    return Interface(inputs, tuple(_value(v) for v in model.graph.output), opset, _duplicates(model.graph))


def _value(info: onnx.ValueInfoProto) -> ValueInfo:
    if not info.type.HasField("tensor_type"):
        return ValueInfo(info.name, "", None)
    tensor = info.type.tensor_type
    dtype = ""
    if tensor.elem_type:
        dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type).name
    if not tensor.HasField("shape"):
        return ValueInfo(info.name, dtype, None)
    dims = tuple(d.dim_value if d.HasField("dim_value") else (d.dim_param or None) for d in tensor.shape.dim)
    return ValueInfo(info.name, dtype, dims)


def _duplicates(graph: onnx.GraphProto) -> tuple[str, ...]:
    """Returns names that more than one node output, or a node output and an input, define."""
    seen = {v.name for v in graph.input}
    twice = []
    for node in graph.node:
        for name in node.output:
            if not name:
                continue
            if name in seen:
                twice.append(name)
            seen.add(name)
    return tuple(dict.fromkeys(twice))
