"""A part of a graph as a model of its own, fed with values that were recorded at its border.

The part keeps what an optimizer may act on: attributes, opsets, functions, constants as constants, dimensions that are
unknown before the run as unknown. Everything else that it reads becomes an input.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from trueport.core.errors import UsageError
from trueport.onnxgraph.nesting import DEEPEST, described, subgraphs
from trueport.onnxgraph.shapes import Dims, known_dims

Array = NDArray[Any]


@dataclass(frozen=True)
class Cut:
    """A part of a model.

    Attributes:
        model: the part.
        feeds: its inputs, by the names that the values have in the whole model.
        nodes: its nodes as the whole model has them, in order, without constants.
    """

    model: onnx.ModelProto
    feeds: dict[str, Any]
    nodes: tuple[onnx.NodeProto, ...]


class Cutter:
    """Cuts parts out of one model; what they share is found once.

    Args:
        model: with its weights inside.
        values: recorded values of the main graph by name, inputs included; lists stand for sequences.
        types: NumPy-style names of the element types that values really have, where they are held in a wider one.
    """

    def __init__(
        self, model: onnx.ModelProto, values: Mapping[str, Any], types: Mapping[str, str] | None = None
    ) -> None:
        self._model = model
        self._values = values
        self._types = types or {}
        graph = model.graph
        overridable = {value.name for value in graph.input}
        self._tensors = {t.name: t for t in graph.initializer}
        self._sparse = {s.values.name: s for s in graph.sparse_initializer}
        self._overridable = overridable
        self._outputs = {value.name: value for value in graph.output}
        self._makers = {name: i for i, node in enumerate(graph.node) for name in node.output if name}
        self._reads = [tuple(dict.fromkeys(_reads(node))) for node in graph.node]
        self._readers: dict[str, list[int]] = {}
        for number, reads in enumerate(self._reads):
            for name in reads:
                self._readers.setdefault(name, []).append(number)
        self._constants = self._constant_values()
        self._dims: dict[str, Dims] = known_dims(model)

    @property
    def nodes(self) -> Sequence[onnx.NodeProto]:
        """The nodes of the main graph; parts are named by their numbers."""
        found: Sequence[onnx.NodeProto] = self._model.graph.node
        return found

    def numbers(self, outputs: Iterable[str]) -> tuple[int, ...]:
        """Returns the numbers of the nodes that make these values, in order; names that none makes are left out."""
        return tuple(sorted({self._makers[name] for name in outputs if name in self._makers}))

    def neighbours(self, number: int) -> frozenset[int]:
        """Returns the nodes that make what a node reads or read what it makes, constants left out."""
        made = [self._makers[n] for n in self._reads[number] if n in self._makers and n not in self._constants]
        read = [r for name in self.nodes[number].output for r in self._readers.get(name, ())]
        return frozenset(i for i in (*made, *read) if i != number and not self.is_constant(i))

    def feeds_into(self, first: int, second: int) -> bool:
        """Whether a node reads what another one makes."""
        return not set(self.nodes[first].output).isdisjoint(self._reads[second])

    def is_constant(self, number: int) -> bool:
        """Whether a node depends on no input."""
        outputs = [name for name in self.nodes[number].output if name]
        return bool(outputs) and self._constants.issuperset(outputs)

    def cut(self, numbers: Collection[int], *, shown: Collection[str] = ()) -> Cut:
        """Returns a part as a model.

        Its outputs are the values that no node of the part reads, and those that are outputs of the whole model.

        Args:
            numbers: of the nodes.
            shown: names of values that become outputs too, where the part makes them.

        Raises:
            UsageError: a value at the border was not recorded, or its type is not known.
        """
        inside = sorted(set(numbers))
        nodes = [self.nodes[i] for i in inside]
        made = {name for node in nodes for name in node.output if name}
        read = dict.fromkeys(name for i in inside for name in self._reads[i])
        graph = onnx.GraphProto(name="part", node=nodes)
        feeds: dict[str, Any] = {}
        for name in read:
            if name not in made:
                self._provide(name, graph, feeds)
        wanted = [n for n in made if n not in read or n in self._outputs or n in shown]
        order = [name for node in nodes for name in node.output if name in wanted]
        graph.output.extend(self._outputs.get(name) or self._result(name) for name in order)
        model = onnx.ModelProto(
            ir_version=self._model.ir_version,
            opset_import=self._model.opset_import,
            functions=self._model.functions,
            producer_name=self._model.producer_name,
            graph=graph,
        )
        return Cut(model, feeds, tuple(nodes))

    def between(self, numbers: Collection[int]) -> tuple[str, ...]:
        """Returns the values that one node of a part hands to another."""
        return tuple(
            name for i in sorted(set(numbers)) for name in self.nodes[i].output if self._read_in(name, numbers)
        )

    def read_elsewhere(self, numbers: Collection[int]) -> tuple[str, ...]:
        """Returns the values that pass between nodes of a part and that other nodes read as well."""
        inside = set(numbers)
        return tuple(n for n in self.between(numbers) if not inside.issuperset(self._readers.get(n, ())))

    def _read_in(self, name: str, numbers: Collection[int]) -> bool:
        return any(reader in numbers for reader in self._readers.get(name, ()))

    def _provide(self, name: str, graph: onnx.GraphProto, feeds: dict[str, Any]) -> None:
        """Adds a value of the border: as it was declared where it is a constant, else as an input."""
        fixed = name not in self._overridable or name not in self._values
        if name in self._tensors and fixed:
            graph.initializer.append(self._tensors[name])
        elif name in self._sparse and fixed:
            graph.sparse_initializer.append(self._sparse[name])
        else:
            value = self._recorded(name)
            if name in self._constants and isinstance(value, np.ndarray):
                graph.initializer.append(onnx.numpy_helper.from_array(np.ascontiguousarray(value), name))
                return
            feeds[name] = value
            graph.input.append(self._input(name, value))

    def _recorded(self, name: str) -> Any:
        value = self._values.get(name)
        if value is None:
            raise UsageError(f"expected a recorded value for '{name}', at which the graph is cut, got none")
        return _narrow(value, self._types.get(name, ""))

    def _input(self, name: str, value: Any) -> onnx.ValueInfoProto:
        if isinstance(value, list | tuple):
            if not value or not isinstance(value[0], np.ndarray):
                raise UsageError(f"expected arrays in the sequence '{name}', at which the graph is cut, got none")
            tensor = onnx.helper.make_tensor_type_proto(_code(value[0]), None)
            return onnx.helper.make_value_info(name, onnx.helper.make_sequence_type_proto(tensor))
        dims = self._dims.get(name, value.shape)
        known = len(dims) == value.ndim and name not in self._tensors
        shape = [
            d if isinstance(d, str) else (None if d is None else n) for d, n in zip(dims, value.shape, strict=False)
        ]
        return onnx.helper.make_tensor_value_info(name, _code(value), shape if known else list(value.shape))

    def _result(self, name: str) -> onnx.ValueInfoProto:
        """A value as an output: with its type where a recorded value tells it."""
        value = self._values.get(name)
        if not isinstance(value, np.ndarray):
            return onnx.ValueInfoProto(name=name)
        dims = self._dims.get(name)
        known = dims is not None and len(dims) == value.ndim
        shape: list[Any] = list(dims) if known and dims is not None else [None] * value.ndim
        return onnx.helper.make_tensor_value_info(name, _code(_narrow(value, self._types.get(name, ""))), shape)

    def _constant_values(self) -> frozenset[str]:
        constant = ({*self._tensors, *self._sparse} - self._overridable) | {""}
        for node, reads in zip(self.nodes, self._reads, strict=True):
            if constant.issuperset(reads) and not node.op_type.startswith("Random"):
                constant.update(node.output)
        return frozenset(constant - {""})


def _reads(node: onnx.NodeProto) -> Iterator[str]:
    """Yields the names that a node reads, those that its subgraphs take from outside included."""
    yield from (name for name in node.input if name)
    waiting = [(graph, frozenset[str](), 1) for graph in subgraphs(node)]
    while waiting:
        graph, outer, depth = waiting.pop()
        if depth > DEEPEST:
            raise UsageError(f"expected graphs nested at most {DEEPEST} deep, got more at {described(node)}")
        own = outer | {v.name for v in graph.input} | {t.name for t in graph.initializer}
        own |= {s.values.name for s in graph.sparse_initializer} | {n for x in graph.node for n in x.output}
        for inner in graph.node:
            yield from (name for name in inner.input if name and name not in own)
            waiting += [(nested, own, depth + 1) for nested in subgraphs(inner)]
        yield from (value.name for value in graph.output if value.name not in own)


def _narrow(value: Any, dtype: str) -> Any:
    """Returns a value in the type that it really has."""
    if isinstance(value, list | tuple):
        return [_narrow(item, dtype) for item in value]
    array = np.asarray(value)
    if not dtype or dtype == array.dtype.name or array.dtype.kind not in "fc":
        return array
    with np.errstate(over="ignore", invalid="ignore"):
        return array.astype(onnx.helper.tensor_dtype_to_np_dtype(_CODES[dtype]))


def _code(array: Array) -> int:
    if array.dtype.kind in "OUS":
        return int(onnx.TensorProto.STRING)
    return int(onnx.helper.np_dtype_to_tensor_dtype(array.dtype))


_CODES = {
    np.dtype(onnx.helper.tensor_dtype_to_np_dtype(code)).name: code
    for code in onnx.TensorProto.DataType.values()
    if code not in (onnx.TensorProto.UNDEFINED, onnx.TensorProto.STRING)
}
