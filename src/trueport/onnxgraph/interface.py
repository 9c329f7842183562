"""What an ONNX model takes and gives: names, types, sizes, and which of its inputs is which of the subject's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from trueport.core.errors import TrueportError

Array = NDArray[Any]


class InterfaceError(TrueportError):
    """The model cannot be fed with the subject's inputs."""


class Form(StrEnum):
    """What kind of value an input or output is."""

    TENSOR = "tensor"
    SEQUENCE = "sequence"
    OPTIONAL = "optional"
    OPTIONAL_SEQUENCE = "optional sequence"
    OTHER = "other"

    @property
    def is_sequence(self) -> bool:
        """Whether it holds several tensors."""
        return self in (Form.SEQUENCE, Form.OPTIONAL_SEQUENCE)

    @property
    def may_be_absent(self) -> bool:
        """Whether it may hold nothing."""
        return self in (Form.OPTIONAL, Form.OPTIONAL_SEQUENCE)


@dataclass(frozen=True)
class ValueInfo:
    """A declared input or output.

    Attributes:
        name: of the value.
        dtype: NumPy's name of the type of a tensor, '' for everything else and where nothing is declared.
        dims: of a tensor: each a number, a name, or None where nothing is declared; None where no rank is declared.
        form: what kind of value it is.
        element: the tensors in a sequence or optional, where they are declared.
    """

    name: str
    dtype: str
    dims: tuple[int | str | None, ...] | None
    form: Form = Form.TENSOR
    element: ValueInfo | None = None


@dataclass(frozen=True)
class Interface:
    """What a model takes and gives.

    Attributes:
        inputs: declared inputs without those that have an initializer.
        outputs: declared outputs.
        opset: of the default domain, 0 where there is none.
        duplicates: names that are defined more than once.
        optional: declared inputs that have an initializer, which holds where they are not fed.
    """

    inputs: tuple[ValueInfo, ...]
    outputs: tuple[ValueInfo, ...]
    opset: int
    duplicates: tuple[str, ...]
    optional: tuple[ValueInfo, ...] = ()

    def pair(self, leaf_names: Sequence[str], name_map: Mapping[str, str]) -> dict[str, int | None]:
        """Returns for each input of the model the number of the subject's leaf that belongs there.

        By the user's map first, then by name, then by position when all others are as many on both sides. The tensors
        of a sequence `s` are the leaves `s.0`, `s.1` and so on, and have an entry each under these names. Inputs that
        have an initializer, and those that may be absent, have an entry only where a leaf of exactly their name is.
        """
        pairs: dict[str, int | None] = {v.name: None for v in self.inputs if v.form in (Form.TENSOR, Form.OTHER)}
        position = {name: i for i, name in enumerate(leaf_names)}
        for name in pairs:
            wanted = name_map.get(name, name)
            pairs[name] = position.get(wanted)
        for value in (*self.inputs, *self.optional):
            if value.name not in pairs:
                pairs.update(_exact(value, name_map.get(value.name, value.name), position))
        taken = {i for i in pairs.values() if i is not None}
        open_names = [name for name, i in pairs.items() if i is None]
        free = [i for i in range(len(leaf_names)) if i not in taken]
        if len(open_names) == len(free):
            pairs.update(zip(open_names, free, strict=True))
        return pairs

    def feeds(self, pairs: Mapping[str, int | None], arrays: Sequence[Array]) -> dict[str, Any]:
        """Returns the inputs by name: arrays, lists of arrays for sequences, None for what may be absent and is.

        Raises:
            InterfaceError: a name is defined twice, an input has no counterpart, or a declared size does not fit.
        """
        if self.duplicates:
            raise InterfaceError(f"the model defines {', '.join(self.duplicates)} more than once")
        feeds: dict[str, Any] = {}
        given = [v for v in self.optional if pairs.get(v.name) is not None]
        for value in (*self.inputs, *given):
            if value.form.is_sequence or value.form.may_be_absent:
                feeds[value.name] = _collected(value, pairs, arrays)
                continue
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


def element_name(sequence: str, number: int) -> str:
    """Returns the name of the leaf that holds one tensor of a sequence input.

    >>> element_name("states", 1)
    'states.1'
    """
    return f"{sequence}.{number}"


def _exact(value: ValueInfo, wanted: str, position: Mapping[str, int]) -> dict[str, int | None]:
    """Returns the entries of an input that is a sequence or need not be given."""
    if not value.form.is_sequence:
        return {value.name: position[wanted]} if wanted in position else {}
    found: dict[str, int | None] = {}
    while element_name(wanted, len(found)) in position:
        found[element_name(value.name, len(found))] = position[element_name(wanted, len(found))]
    return found


def _collected(value: ValueInfo, pairs: Mapping[str, int | None], arrays: Sequence[Array]) -> Any:
    if not value.form.is_sequence:
        index = pairs.get(value.name)
        return None if index is None else np.asarray(arrays[index])
    tensors: list[Array] = []
    while (index := pairs.get(element_name(value.name, len(tensors)))) is not None:
        tensors.append(np.asarray(arrays[index]))
    return tensors or (None if value.form.may_be_absent else [])


def read_interface(model: onnx.ModelProto) -> Interface:
    """Returns the interface of a model."""
    initialized = {t.name for t in model.graph.initializer} | {s.values.name for s in model.graph.sparse_initializer}
    inputs = tuple(_value(v) for v in model.graph.input if v.name not in initialized)
    optional = tuple(_value(v) for v in model.graph.input if v.name in initialized)
    opset = next((o.version for o in model.opset_import if o.domain in ("", "ai.onnx")), 0)
    outputs = tuple(_value(v) for v in model.graph.output)
    return Interface(inputs, outputs, opset, _duplicates(model.graph), optional)


def _value(info: onnx.ValueInfoProto) -> ValueInfo:
    kind = info.type.WhichOneof("value")
    if kind == "tensor_type":
        return ValueInfo(info.name, *_tensor(info.type.tensor_type))
    if kind is None:
        return ValueInfo(info.name, "", None)
    form, inner = Form.OTHER, info.type
    if kind == "optional_type":
        form, inner = Form.OPTIONAL, info.type.optional_type.elem_type
    if inner.WhichOneof("value") == "sequence_type":
        form = Form.OPTIONAL_SEQUENCE if form is Form.OPTIONAL else Form.SEQUENCE
        inner = inner.sequence_type.elem_type
    if inner.WhichOneof("value") != "tensor_type":
        return ValueInfo(info.name, "", None, Form.OTHER if form is not Form.OPTIONAL else form)
    return ValueInfo(info.name, "", None, form, ValueInfo(info.name, *_tensor(inner.tensor_type)))


def _tensor(tensor: onnx.TypeProto.Tensor) -> tuple[str, tuple[int | str | None, ...] | None]:
    """Returns type and dimensions; '' for a type that this release of ONNX does not know."""
    dtype = ""
    if tensor.elem_type:
        try:
            dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type).name
        except KeyError:
            dtype = ""
    if not tensor.HasField("shape"):
        return dtype, None
    return dtype, tuple(d.dim_value if d.HasField("dim_value") else (d.dim_param or None) for d in tensor.shape.dim)


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
