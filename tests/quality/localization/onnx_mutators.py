"""One node of an ONNX model made wrong: attributes, operands, constants, and operators taken for near ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper

Array = NDArray[Any]
WRONG = "__wrong"
"""Ends the names of constants that a mutator adds."""


@dataclass
class Site:
    """A node in a model that may be changed.

    Attributes:
        model: that holds it.
        node: that is made wrong.
        constants: values of the initializers and `Constant` nodes.
        rng: decides what is left open.
    """

    model: onnx.ModelProto
    node: onnx.NodeProto
    constants: Mapping[str, Array]
    rng: np.random.Generator

    def attribute(self, name: str, default: Any) -> Any:
        """Returns the value of an attribute."""
        found = next((a for a in self.node.attribute if a.name == name), None)
        return default if found is None else helper.get_attribute_value(found)

    def set(self, name: str, value: Any) -> None:
        """Sets an attribute."""
        kept = [a for a in self.node.attribute if a.name != name]
        del self.node.attribute[:]
        self.node.attribute.extend([*kept, helper.make_attribute(name, value)])

    def constant(self, place: int, *, floating: bool = True) -> Array | None:
        """Returns the constant input at a place; None where it is computed, missing or of another kind."""
        if place >= len(self.node.input):
            return None
        value = self.constants.get(self.node.input[place])
        return value if value is not None and (value.dtype.kind == "f") == floating else None

    def replace(self, place: int, value: Array) -> None:
        """Gives this node alone another constant."""
        name = f"{self.node.input[place]}{WRONG}"
        self.model.graph.initializer.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
        self.node.input[place] = name

    def becomes(self, operator: str, **attributes: Any) -> bool:
        """Makes it another operator."""
        self.node.op_type = operator
        del self.node.attribute[:]
        self.node.attribute.extend([helper.make_attribute(k, v) for k, v in attributes.items()])
        return True


Mutator = Callable[[Site], bool]
"""Changes the node; False where it does not fit."""


def _operator(*names: str) -> Callable[[Mutator], Mutator]:
    def decorate(change: Mutator) -> Mutator:
        return lambda site: site.node.domain == "" and site.node.op_type in names and change(site)

    return decorate


@_operator("Softmax", "LogSoftmax")
def other_axis(site: Site) -> bool:
    """The first or second axis in place of the last."""
    site.set("axis", int(site.rng.integers(0, 2)))
    return True


@_operator("LayerNormalization", "BatchNormalization", "InstanceNormalization", "GroupNormalization")
def larger_epsilon(site: Site) -> bool:
    """A number under a root that is thousand times too large."""
    site.set("epsilon", float(site.attribute("epsilon", 1e-5)) * 1000)
    return True


@_operator("LeakyRelu", "Elu", "Gemm")
def other_alpha(site: Site) -> bool:
    """A factor that is a tenth too large."""
    site.set("alpha", float(site.attribute("alpha", 1.0)) * 1.1)
    return True


@_operator("Transpose")
def other_permutation(site: Site) -> bool:
    """Two axes exchanged."""
    order = list(site.attribute("perm", []))
    if len(order) < 2:
        return False
    a, b = sorted(site.rng.choice(len(order), 2, replace=False))
    order[a], order[b] = order[b], order[a]
    site.set("perm", order)
    return True


@_operator("Conv", "MaxPool", "AveragePool")
def moved_padding(site: Site) -> bool:
    """Padding that is all on one side."""
    pads = list(site.attribute("pads", []))
    if not any(pads):
        return False
    half = len(pads) // 2
    site.set("pads", [a + b for a, b in zip(pads[:half], pads[half:], strict=True)] + [0] * half)
    return True


@_operator("Sub", "Div", "Pow", "MatMul", "Greater", "Less")
def swapped_operands(site: Site) -> bool:
    """The second operand in place of the first."""
    first, second = site.node.input[:2]
    site.node.input[0], site.node.input[1] = second, first
    return first != second


@_operator("Gemm", "Conv", "ConvTranspose", "LayerNormalization", "BatchNormalization")
def lost_bias(site: Site) -> bool:
    """A bias of zeros."""
    bias = site.constant(2)
    if bias is None or not bias.any():
        return False
    site.replace(2, np.zeros_like(bias))
    return True


def _weight(site: Site) -> int | None:
    places = [i for i in range(len(site.node.input)) if (c := site.constant(i)) is not None and c.size > 1]
    return None if not places else int(site.rng.choice(places))


@_operator("Gemm", "MatMul", "Conv", "Add", "Mul", "LayerNormalization", "BatchNormalization", "Gather")
def scaled_constant(site: Site) -> bool:
    """A weight that is two per cent too large."""
    place = _weight(site)
    if place is None:
        return False
    value = site.constant(place)
    assert value is not None
    site.replace(place, value * value.dtype.type(1.02))
    return True


@_operator("Gemm", "MatMul", "Conv", "Add", "Mul", "LayerNormalization", "BatchNormalization")
def flipped_sign(site: Site) -> bool:
    """The largest number of a weight with the other sign."""
    place = _weight(site)
    if place is None:
        return False
    value = np.array(site.constant(place))
    where = np.unravel_index(np.abs(value).argmax(), value.shape)
    value[where] = -value[where]
    site.replace(place, value)
    return True


@_operator("Mul", "Div", "Add", "Sub", "Pow", "Min", "Max", "Where", "Clip")
def wrong_literal(site: Site) -> bool:
    """A number that is a hundredth too large."""
    places = [i for i in range(len(site.node.input)) if (c := site.constant(i)) is not None and c.size == 1]
    places = [i for i in places if np.isfinite(site.constants[site.node.input[i]]).all()]
    if not places:
        return False
    value = site.constants[site.node.input[places[0]]]
    site.replace(places[0], value * value.dtype.type(1.01) + value.dtype.type(1e-3))
    return True


@_operator("Slice")
def moved_slice(site: Site) -> bool:
    """A slice that begins and ends one place off."""
    starts, ends = site.constant(1, floating=False), site.constant(2, floating=False)
    if starts is None or ends is None:
        return False
    step = 1 if (starts >= 0).all() and (starts > 0).any() else -1
    moved = -1 if step == 1 else 1
    far = np.abs(ends) > 2**30
    site.replace(1, starts + moved)
    site.replace(2, np.where(far, ends, ends + moved))
    return True


@_operator("Gather")
def other_index(site: Site) -> bool:
    """The neighbour of what was to be taken."""
    index = site.constant(1, floating=False)
    if index is None:
        return False
    site.replace(1, np.where(index == 0, 1, index - 1).astype(index.dtype))
    return True


_NEAR: dict[str, tuple[tuple[str, dict[str, Any]], ...]] = {
    "Relu": (("LeakyRelu", {"alpha": 0.01}), ("Elu", {})),
    "LeakyRelu": (("Relu", {}),),
    "Tanh": (("Sigmoid", {}), ("Softsign", {})),
    "Sigmoid": (("HardSigmoid", {}), ("Tanh", {})),
    "Erf": (("Tanh", {}),),
    "Add": (("Sub", {}),),
    "Sub": (("Add", {}),),
    "Mul": (("Add", {}),),
    "ReduceMean": (("ReduceSum", {}), ("ReduceMax", {})),
    "Sin": (("Cos", {}),),
    "Cos": (("Sin", {}),),
    "Exp": (("Softplus", {}),),
    "MaxPool": (("AveragePool", {}),),
    "GlobalAveragePool": (("GlobalMaxPool", {}),),
    "Sqrt": (("Abs", {}),),
    "HardSwish": (("Relu", {}),),
}


def near_operator(site: Site) -> bool:
    """An operator that is nearly the right one."""
    if site.node.domain == "" and site.node.op_type == "Gelu":
        site.set("approximate", "none" if site.attribute("approximate", b"none") == b"tanh" else "tanh")
        return True
    others = _NEAR.get(site.node.op_type)
    if site.node.domain != "" or others is None:
        return False
    operator, attributes = others[int(site.rng.integers(len(others)))]
    if site.node.op_type in ("ReduceMean", "MaxPool"):
        site.node.op_type = operator  # the attributes say the same there
        return not (site.node.op_type == "AveragePool" and site.attribute("storage_order", 0))
    return site.becomes(operator, **attributes)


MUTATORS: dict[str, Mutator] = {
    "other-axis": other_axis, "larger-epsilon": larger_epsilon, "other-alpha": other_alpha,
    "other-permutation": other_permutation, "moved-padding": moved_padding, "swapped-operands": swapped_operands,
    "lost-bias": lost_bias, "scaled-constant": scaled_constant, "flipped-sign": flipped_sign,
    "wrong-literal": wrong_literal, "moved-slice": moved_slice, "other-index": other_index,
    "near-operator": near_operator,
}  # fmt: skip


def _constants(model: onnx.ModelProto, names: Iterable[str]) -> dict[str, Array]:
    """Values of those of the names that are initializers or `Constant` nodes."""
    wanted = set(names)
    found = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer if t.name in wanted}
    for node in model.graph.node:
        if node.op_type == "Constant" and node.output[0] in wanted and node.attribute[0].name == "value":
            found[node.output[0]] = numpy_helper.to_array(node.attribute[0].t)
    return found


def mutated(model: onnx.ModelProto, value: str, mutator: str, seed: int) -> onnx.ModelProto | None:
    """Returns a copy in which the node that makes a value is wrong; None where the mutator does not fit.

    The same arguments make the same change, also in a later model that has the node.
    """
    place = next((i for i, n in enumerate(model.graph.node) if value in n.output), None)
    if place is None:
        return None
    # Tried on an empty model first: most mutators do not fit most nodes, and models are large.
    trial = onnx.ModelProto()
    trial.graph.node.add().CopyFrom(model.graph.node[place])
    constants = _constants(model, trial.graph.node[0].input)
    if not MUTATORS[mutator](Site(trial, trial.graph.node[0], constants, np.random.default_rng(seed))):
        return None
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    copy.graph.node[place].CopyFrom(trial.graph.node[0])
    copy.graph.initializer.extend(trial.graph.initializer)
    return copy
