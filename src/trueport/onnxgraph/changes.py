"""What an optimizer or a writer changed: two models of the same thing, compared by names and contents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import numpy_helper

from trueport.onnxgraph.nesting import bodies

Identity = tuple[bytes, ...]
_WIRING = frozenset({"Constant", "Identity"})
"""Operators that hold or hand on a value; a sequence is told without them."""
_LONGEST = 60
"""Characters of one attribute's value in a text."""


@dataclass(frozen=True)
class Changes:
    """What differs between two models.

    Attributes:
        removed: nodes of the first that the second does not have, in order.
        added: nodes of the second that the first does not have, in order.
        tensors: sentences about initializers of one name that differ, or that one of the two does not have.
        interface: sentences about inputs, outputs, operator sets that differ.
    """

    removed: tuple[onnx.NodeProto, ...] = ()
    added: tuple[onnx.NodeProto, ...] = ()
    tensors: tuple[str, ...] = ()
    interface: tuple[str, ...] = ()

    @property
    def sequence(self) -> tuple[str, ...]:
        """The operators that were removed, in order, without those that only hold or hand on a value."""
        return tuple(n.op_type for n in self.removed if n.op_type not in _WIRING)

    @property
    def nothing(self) -> bool:
        """Whether the two are the same."""
        return not (self.removed or self.added or self.tensors or self.interface)


def changes(before: onnx.ModelProto, after: onnx.ModelProto) -> Changes:
    """Returns what differs; graphs inside of nodes and functions are included.

    A node that takes a value under another name, and is the same otherwise, is not changed: what it took was.
    """
    old, new = _nodes(before), _nodes(after)
    kept = Counter(map(_key, old)) & Counter(map(_key, new))
    removed, added = list(_beyond(old, kept)), list(_beyond(new, kept))
    rewired = Counter(map(_name, removed)) & Counter(map(_name, added))
    return Changes(
        tuple(_beyond(removed, rewired, _name)),
        tuple(_beyond(added, rewired, _name)),
        tuple(_tensors(before.graph, after.graph)),
        tuple(_interface(before, after)),
    )


def node_text(node: onnx.NodeProto) -> str:
    """Returns one line: `Transpose(perm=[0, 2, 1]) x -> t`."""
    attributes = ", ".join(f"{a.name}={_attribute(a)}" for a in node.attribute)
    domain = f"{node.domain}." if node.domain not in ("", "ai.onnx") else ""
    called = f"{domain}{node.op_type}" + (f"({attributes})" if attributes else "")
    return f"{called} {', '.join(node.input)} -> {', '.join(node.output)}"


def _nodes(model: onnx.ModelProto) -> list[onnx.NodeProto]:
    return [node for body in bodies(model) for node in body.nodes]


def _key(node: onnx.NodeProto) -> Identity:
    return (*_name(node), repr(list(node.input)).encode())


def _name(node: onnx.NodeProto) -> Identity:
    """What a node is besides the names of what it takes."""
    attributes = sorted(a.SerializeToString(deterministic=True) for a in node.attribute)
    return (node.domain.encode(), node.op_type.encode(), repr(list(node.output)).encode(), *attributes)


def _beyond(
    nodes: Sequence[onnx.NodeProto], kept: Mapping[Identity, int], key: Callable[[onnx.NodeProto], Identity] = _key
) -> Iterator[onnx.NodeProto]:
    """Yields the nodes that are not among those kept, as often as they are too many."""
    left = Counter(kept)
    for node in nodes:
        name = key(node)
        if left[name]:
            left[name] -= 1
        else:
            yield node


def _attribute(attribute: onnx.AttributeProto) -> str:
    value = onnx.helper.get_attribute_value(attribute)
    if isinstance(value, onnx.TensorProto):
        return f"{onnx.TensorProto.DataType.Name(value.data_type).lower()}{list(value.dims)}"
    if isinstance(value, onnx.GraphProto):
        return f"a graph of {len(value.node)} nodes"
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def _tensors(before: onnx.GraphProto, after: onnx.GraphProto) -> Iterator[str]:
    old, new = ({t.name: t for t in graph.initializer} for graph in (before, after))
    for name in old.keys() & new.keys():
        difference = _difference(old[name], new[name])
        if difference:
            yield f"initializer '{name}': {difference}"
    for name in sorted(old.keys() - new.keys()):
        yield f"initializer '{name}' is gone"
    for name in sorted(new.keys() - old.keys()):
        yield f"initializer '{name}' is new"


def _difference(old: onnx.TensorProto, new: onnx.TensorProto) -> str:
    if (old.data_type, list(old.dims)) != (new.data_type, list(new.dims)):
        return f"{_described(old)} became {_described(new)}"
    external = onnx.TensorProto.EXTERNAL
    if external in (old.data_location, new.data_location):
        return "" if old == new else "its external data lies elsewhere"
    if old.raw_data and old.raw_data == new.raw_data:
        return ""
    a, b = numpy_helper.to_array(old), numpy_helper.to_array(new)
    if a.dtype.kind not in "fiub":
        return "" if a.tobytes() == b.tobytes() else "other values"
    wide = a.astype(np.float64), b.astype(np.float64)
    differs = ~((wide[0] == wide[1]) | (np.isnan(wide[0]) & np.isnan(wide[1])))
    count = int(differs.sum())
    if not count:
        return ""
    with np.errstate(invalid="ignore"):
        largest = float(np.nanmax(np.abs(wide[0] - wide[1])[differs]))
    return f"{count} of {a.size} elements differ, by up to {largest:.3g}"


def _described(tensor: onnx.TensorProto) -> str:
    return f"{onnx.TensorProto.DataType.Name(tensor.data_type).lower()}{list(tensor.dims)}"


def _interface(before: onnx.ModelProto, after: onnx.ModelProto) -> Iterator[str]:
    opsets = [{o.domain or "ai.onnx": o.version for o in model.opset_import} for model in (before, after)]
    for domain in sorted(opsets[0].keys() | opsets[1].keys()):
        versions = [o.get(domain) for o in opsets]
        if versions[0] != versions[1]:
            yield f"operator set {domain}: {versions[0] or 'none'} became {versions[1] or 'none'}"
    for kind in ("input", "output"):
        old, new = ([(i.name, i.type) for i in getattr(m.graph, kind)] for m in (before, after))
        if [name for name, _ in old] != [name for name, _ in new]:
            yield f"{kind}s: {[name for name, _ in old]} became {[name for name, _ in new]}"
            continue
        for (name, was), (_, is_now) in zip(old, new, strict=True):
            if was != is_now:
                yield f"{kind} '{name}': {_type(was)} became {_type(is_now)}"


def _type(declared: onnx.TypeProto) -> str:
    kind = declared.WhichOneof("value")
    if kind != "tensor_type":
        return str(kind)
    tensor = declared.tensor_type
    sizes = [d.dim_param or (d.dim_value if d.HasField("dim_value") else "?") for d in tensor.shape.dim]
    return f"{onnx.TensorProto.DataType.Name(tensor.elem_type).lower()}{sizes}"
