"""Which values the inputs of a model may hold, by the operators that read them.

An index of Gather must lie in the table, a length of an LSTM in the sequence, the argument of a logarithm above zero.
An input drawn without regard to this is refused by the source, or gives NaN in every output, and shows nothing.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx

from trueport.core.domain import Domain, DomainKind
from trueport.onnxgraph.consumers import Use
from trueport.onnxgraph.facts import Facts, attribute
from trueport.onnxgraph.settings import setting

_STANDARD = ("", "ai.onnx", "ai.onnx.ml")
_LEAST = 1e-3
_GAP = 0.05
_MASKED = -1e4
_HIDES = -100.0
_INTEGERS = frozenset({2, 3, 4, 5, 6, 7, 12, 13, 21, 22, 25, 26})
_BOOL = 9

RANGES: dict[tuple[str, int], Domain] = {
    ("Log", 0): Domain(low=_LEAST),
    ("Sqrt", 0): Domain(low=0),
    ("Acos", 0): Domain(low=-1, high=1),
    ("Asin", 0): Domain(low=-1, high=1),
    ("Atanh", 0): Domain(low=-1 + _LEAST, high=1 - _LEAST),
    ("Acosh", 0): Domain(low=1),
    ("Reciprocal", 0): Domain(gap=_GAP),
    ("Div", 1): Domain(gap=_GAP),
    ("Mod", 1): Domain(gap=_GAP),
    ("Clip", 1): Domain(high=0),
    ("Clip", 2): Domain(low=0),
    ("Bernoulli", 0): Domain(low=0, high=1),
    ("GridSample", 1): Domain(DomainKind.GRID, low=-1, high=1),
    ("RoiAlign", 1): Domain(DomainKind.GRID, low=0, high=8),
    ("BatchNormalization", 4): Domain(low=_LEAST),
    ("BitShift", 1): Domain(low=0, high=7),
    ("NonMaxSuppression", 3): Domain(low=0, high=1),
    ("Loop", 0): Domain(DomainKind.LENGTH, low=0, high=8),
    **{
        (operator, operand): Domain(low=2.0**-8, high=1.0)
        for operator, operands in {
            "QuantizeLinear": (1,),
            "DequantizeLinear": (1,),
            "QLinearConv": (1, 4, 6),
            "QLinearMatMul": (1, 4, 6),
        }.items()
        for operand in operands
    },
}
"""(operator, operand) -> values, where they depend on nothing else."""


def input_domains(model: onnx.ModelProto) -> dict[str, Domain]:
    """Returns input -> domain for those inputs, with initializers that are inputs, whose readers restrict them.

    An index or a length hangs on a dynamic axis by its symbol; see `shapes.symbol_of` for axes without one. Takes
    time in proportion to the model. What is not understood is not restricted.
    """
    facts = Facts(model)
    found: dict[str, Domain] = {}
    for info in model.graph.input:
        domain = _of_input(facts, info.name)
        if domain is not None:
            found[info.name] = domain
    return found


def _of_input(facts: Facts, name: str) -> Domain | None:
    integer = facts.types.get(name, 1) in _INTEGERS
    domain: Domain | None = None
    for use in facts.readers.uses(name):
        if use.node.domain not in _STANDARD:
            continue
        told = _of_use(facts, use, name, integer=integer)
        if told is not None:
            domain = told if domain is None else domain.joined(told)
    if domain is None and integer and "mask" in name.lower():
        return Domain(DomainKind.MASK, values=(0, 1))
    return domain


def _of_use(facts: Facts, use: Use, name: str, *, integer: bool) -> Domain | None:
    node, operand = use.node, use.operand
    told = setting(facts, node, operand, direct=use.direct and use.is_main)
    if told is not None:
        return told
    rule = RULES.get(node.op_type)
    if rule is not None:
        return rule(facts, use)
    if integer and _is_mask(facts, use):
        return Domain(DomainKind.MASK, values=(0, 1))
    if not integer and "mask" in name.lower() and _is_added_before_softmax(facts, use):
        return Domain(DomainKind.MASK, values=(_MASKED, 0))
    if node.op_type == "Sub" and operand == 1 and not integer and _is_inverted_mask(facts, node):
        return Domain(DomainKind.MASK, values=(0, 1))
    if node.op_type == "Sub" and operand == 1 and not integer and _is_share(facts, node):
        return Domain(low=_LEAST, high=1 - _LEAST)
    return RANGES.get((node.op_type, operand))


# ---------------------------------------------------------------------- patterns


def _all_ones(facts: Facts, name: str) -> bool:
    value = facts.constant(name)
    return value is not None and value.dtype.kind in "fiu" and bool(np.all(value == 1))


def _is_mask(facts: Facts, use: Use) -> bool:
    """Whether integers are turned to booleans, or to floats that are subtracted from one."""
    if use.node.op_type == "Cast":
        return attribute(use.node, "to", 0) == _BOOL
    return use.node.op_type == "Sub" and use.operand == 1 and bool(use.casts) and _all_ones(facts, use.node.input[0])


def _is_added_before_softmax(facts: Facts, use: Use) -> bool:
    if use.node.op_type != "Add" or not use.is_main:
        return False
    return any(reader.op_type == "Softmax" for reader, _ in facts.readers.of(use.node.output[0]))


def _is_inverted_mask(facts: Facts, node: onnx.NodeProto) -> bool:
    """Whether one minus the value is multiplied by a large negative number, as what hides positions from attention."""
    if not _all_ones(facts, node.input[0]):
        return False
    for reader, operand in facts.readers.of(node.output[0]):
        factor = facts.constant(reader.input[1 - operand]) if reader.op_type == "Mul" else None
        if factor is not None and factor.dtype.kind == "f" and factor.size == 1 and float(factor.min()) <= _HIDES:
            return True
    return False


def _is_share(facts: Facts, node: onnx.NodeProto) -> bool:
    """Whether one minus the value is a denominator or the argument of a logarithm, as in the inverse sigmoid."""
    readers = facts.readers.of(node.output[0])
    asked = any(n.op_type == "Log" or (n.op_type == "Div" and operand == 1) for n, operand in readers)
    return asked and _all_ones(facts, node.input[0])


# ---------------------------------------------------------------------- operators whose other operands matter


def _along_axis(operand: int, default: int = 0) -> Callable[[Facts, Use], Domain | None]:
    def rule(facts: Facts, use: Use) -> Domain | None:
        if use.operand != operand:
            return None
        return facts.below(use.node.input[0] if use.is_main else "", attribute(use.node, "axis", default))

    return rule


def _along(operand: int, table: int, axis: int, kind: DomainKind) -> Callable[[Facts, Use], Domain | None]:
    def rule(facts: Facts, use: Use) -> Domain | None:
        if use.operand != operand:
            return RANGES.get((use.node.op_type, use.operand))
        return facts.below(use.node.input[table] if use.is_main else "", axis, kind)

    return rule


def _coordinates(facts: Facts, use: Use) -> Domain | None:
    """Indices of GatherND and ScatterND: one for each of the leading axes of the data."""
    if use.operand != 1:
        return None
    data, first = use.node.input[0], attribute(use.node, "batch_dims", 0)
    rank, indices = len(facts.dims(data) or ()), facts.dims(use.node.input[1])
    last = indices[-1] if indices else None
    domain = None
    for axis in range(first, min(rank, first + last) if isinstance(last, int) else rank):
        told = facts.below(data, axis)
        domain = told if domain is None else domain.joined(told)
    return domain if domain is not None and use.is_main else Domain(DomainKind.INDEX, low=0, high=0)


def _one_hot(facts: Facts, use: Use) -> Domain | None:
    if use.operand != 0:
        return None
    depth = facts.constant(use.node.input[1]) if use.is_main else None
    if depth is not None and depth.size == 1:
        return Domain(DomainKind.INDEX, low=0, high=max(int(depth.reshape(())) - 1, 0))
    axis = attribute(use.node, "axis", -1)
    return facts.below(use.node.output[0] if use.is_main else "", axis)


def _recurrent(facts: Facts, use: Use) -> Domain | None:
    if use.operand != 4:
        return None
    axis = 1 if attribute(use.node, "layout", 0) else 0
    return facts.below(use.node.input[0] if use.is_main else "", axis, DomainKind.LENGTH)


def _reversed(facts: Facts, use: Use) -> Domain | None:
    if use.operand != 1:
        return None
    return facts.below(use.node.input[0] if use.is_main else "", attribute(use.node, "time_axis", 0), DomainKind.LENGTH)


def _power(facts: Facts, use: Use) -> Domain | None:
    if use.operand == 1:
        return Domain(low=0, high=3)
    exponent = facts.constant(use.node.input[1])
    whole = exponent is not None and bool(np.all(exponent == np.rint(exponent)))
    if not whole or exponent is None:
        return Domain(low=_LEAST)
    return Domain(gap=_GAP) if bool((exponent < 0).any()) else None


def _attention(facts: Facts, use: Use) -> Domain | None:
    if use.operand == 3 and facts.types.get(use.node.input[3]) != _BOOL:
        return Domain(DomainKind.MASK, values=(_MASKED, 0))
    if use.operand == 6:
        return facts.below(use.node.input[1] if use.is_main else "", -2, DomainKind.LENGTH)
    return None


def _compared(facts: Facts, use: Use) -> Domain | None:
    """Integers compared with all numbers of a range are one-hot encoded; a single one chooses a branch, as a mode."""
    other = facts.constant(use.node.input[1 - use.operand])
    if other is None or other.dtype.kind not in "iu":
        return None
    if other.size > 2 and np.array_equal(other.ravel(), np.arange(other.size) + other.min()):
        return Domain(DomainKind.INDEX, low=int(other.min()), high=int(other.max()))
    if other.size != 1 or not use.is_main or facts.length(use.node.input[use.operand]) != 1:
        return None
    constant = int(other.reshape(()))
    return Domain(values=(0, constant) if constant else (0, 1))


def _unpooled(facts: Facts, use: Use) -> Domain | None:
    if use.operand != 1:
        return None
    dims = facts.dims(use.node.input[0])
    known = [d for d in dims or () if isinstance(d, int)]
    return Domain(DomainKind.INDEX, low=0, high=max(int(np.prod(known)) - 1, 0) if known else 0)


RULES: dict[str, Callable[[Facts, Use], Domain | None]] = {
    "Gather": _along_axis(1),
    "GatherElements": _along_axis(1),
    "ScatterElements": _along_axis(1),
    "Scatter": _along_axis(1),
    "ArrayFeatureExtractor": _along(1, 0, -1, DomainKind.INDEX),
    "GatherND": _coordinates,
    "ScatterND": _coordinates,
    "OneHot": _one_hot,
    "NegativeLogLikelihoodLoss": _along(1, 0, 1, DomainKind.INDEX),
    "SoftmaxCrossEntropyLoss": _along(1, 0, 1, DomainKind.INDEX),
    "RotaryEmbedding": _along(3, 1, 0, DomainKind.INDEX),
    "RoiAlign": _along(2, 0, 0, DomainKind.INDEX),
    "TensorScatter": _along(2, 0, -2, DomainKind.INDEX),
    "MaxUnpool": _unpooled,
    "RNN": _recurrent,
    "LSTM": _recurrent,
    "GRU": _recurrent,
    "ReverseSequence": _reversed,
    "Pow": _power,
    "Attention": _attention,
    "Equal": _compared,
}
"""Operator -> the domain of the operand in question, where it depends on other operands."""
