"""What the rules for domains may ask about a model: dimensions, symbols of dynamic axes, constants, attributes."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from trueport.core.domain import Domain, DomainKind
from trueport.onnxgraph.consumers import Readers
from trueport.onnxgraph.shapes import Dims, element_types, known_dims, symbol_of

_FEW = 1024


class Facts:
    """Facts about the main graph of a model; what is not known is None."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self.readers = Readers(model)
        self.types = element_types(model)
        self.symbols: set[str] = set()
        self._dims = known_dims(model)
        for info in model.graph.input:
            self.symbols |= {d for d in self._dims.get(info.name, ()) if isinstance(d, str)}
        given = {v.name for v in model.graph.input}
        self._tensors = {t.name: t for t in model.graph.initializer if t.name not in given and _count(t) <= _FEW}
        for node in model.graph.node:
            if node.op_type == "Constant" and node.output:
                for value in node.attribute:
                    tensor = _tensor(value)
                    if tensor is not None:
                        self._tensors[node.output[0]] = tensor

    def dims(self, name: str) -> Dims | None:
        """Returns the dimensions of a value; symbols that stand for no axis of an input are None."""
        dims = self._dims.get(name)
        if dims is None:
            return None
        return tuple(None if isinstance(d, str) and d not in self.symbols else d for d in dims)

    def constant(self, name: str) -> NDArray[Any] | None:
        """Returns the value of a constant of at most 1,024 elements."""
        tensor = self._tensors.get(name)
        if tensor is None or _count(tensor) > _FEW or tensor.data_location == onnx.TensorProto.EXTERNAL:
            return None
        return np.asarray(onnx.numpy_helper.to_array(tensor))

    def length(self, name: str) -> int | None:
        """Returns the number of elements of a value of rank 1, or 1 for a scalar."""
        dims = self.dims(name)
        if dims == ():
            return 1
        return dims[0] if dims is not None and len(dims) == 1 and isinstance(dims[0], int) else None

    def below(self, name: str, axis: int, kind: DomainKind = DomainKind.INDEX) -> Domain:
        """Returns the indices (from 0) or lengths (from 1) that an axis of a value allows; 0 or 1 where it is unknown.

        Args:
            name: of the value.
            axis: may be negative.
            kind: `INDEX` or `LENGTH`.
        """
        dims = self.dims(name)
        low = 1 if kind is DomainKind.LENGTH else 0
        size = dims[axis] if dims and -len(dims) <= axis < len(dims) else None
        if isinstance(size, str):
            return Domain(kind, low=low, high_symbol=size, high_offset=low - 1)
        return Domain(kind, low=low, high=low if size is None else max(size - 1 + low, low))


def attribute(node: onnx.NodeProto, name: str, default: int) -> int:
    """Returns an integer attribute of a node."""
    return next((int(a.i) for a in node.attribute if a.name == name), default)


def _tensor(attribute: onnx.AttributeProto) -> onnx.TensorProto | None:
    """Returns the value of a Constant node in whichever way it is spelled; None for strings and sparse ones."""
    spelled = {"value_int": np.int64, "value_ints": np.int64, "value_float": np.float32, "value_floats": np.float32}
    if attribute.name == "value":
        return attribute.t
    if attribute.name not in spelled:
        return None
    value = onnx.helper.get_attribute_value(attribute)
    return onnx.numpy_helper.from_array(np.asarray(value, spelled[attribute.name]))


def _count(tensor: onnx.TensorProto) -> int:
    return int(np.prod([max(d, 0) for d in tensor.dims], dtype=np.float64))


__all__ = ["Facts", "attribute", "symbol_of"]
