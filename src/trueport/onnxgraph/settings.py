"""Operands that decide shapes or modes: they are never drawn anew, but the example needs values that are valid.

The best guess is the declared or inferred shape of the output. Where nothing is known, the value is the one that
changes nothing: no padding, one repetition, all elements.
"""

from __future__ import annotations

from collections.abc import Callable

import onnx

from trueport.core.domain import Domain, DomainKind
from trueport.onnxgraph.facts import Facts, attribute

Values = tuple[int | float | str, ...]
Rule = Callable[[Facts, onnx.NodeProto, int], Values]
"""(facts, node, number of the operand) -> values, flat; a name stands for the size of that symbol."""

_FAR = 2**31 - 1
_UNKNOWN_SIZE = 4


def setting(facts: Facts, node: onnx.NodeProto, operand: int, *, direct: bool) -> Domain | None:
    """Returns the domain of an operand that is a setting, with a default where the operand is the input itself."""
    rule = SETTINGS.get((node.op_type, operand))
    if rule is None or node.domain not in ("", "ai.onnx"):
        return None
    return Domain(DomainKind.SETTING, fixed=True, default=rule(facts, node, operand) if direct else None)


def _always(*values: int | float) -> Rule:
    def rule(facts: Facts, node: onnx.NodeProto, operand: int) -> Values:
        del facts, node, operand
        return values

    return rule


def _output_shape(facts: Facts, node: onnx.NodeProto, operand: int) -> Values:
    """The shape of the output; one unknown size is left to the operator where it is a Reshape."""
    dims = facts.dims(node.output[0])
    count = facts.length(node.input[operand])
    free = -1 if node.op_type == "Reshape" else 1
    if dims is None or (count is not None and count != len(dims)):
        return (free, *([1] * ((count or 1) - 1)))
    values: list[int | float | str] = []
    for dim in dims:
        values.append(dim if dim is not None else (free if free not in values else 1))
    if node.op_type == "Reshape" and -1 not in values and any(isinstance(v, str) for v in values):
        values[next(i for i, v in enumerate(values) if isinstance(v, str))] = -1
    return tuple(values)


def _new_shape(facts: Facts, node: onnx.NodeProto, operand: int) -> Values:
    dims = facts.dims(node.output[0])
    if dims is None:
        return (_UNKNOWN_SIZE,) * (facts.length(node.input[operand]) or 1)
    return tuple(_UNKNOWN_SIZE if d is None else d for d in dims)


def _ratio(facts: Facts, node: onnx.NodeProto, operand: int) -> Values:
    """By how much each axis grows: output size by input size."""
    before, after = facts.dims(node.input[0]), facts.dims(node.output[0])
    if before is None or after is None or len(before) != len(after):
        return (1,) * (facts.length(node.input[operand]) or (len(before) if before else 1))
    whole = node.op_type == "Tile"
    made: list[int | float | str] = []
    for b, a in zip(before, after, strict=True):
        known = isinstance(a, int) and isinstance(b, int) and b > 0
        made.append(1 if not known else (a // b if whole else a / b))  # type: ignore[operator]  # both are int here
    return tuple(made)


def _pads(facts: Facts, node: onnx.NodeProto, operand: int) -> Values:
    before, after = facts.dims(node.input[0]), facts.dims(node.output[0])
    if before is None or after is None or len(before) != len(after):
        return (0,) * (facts.length(node.input[operand]) or 2 * len(before or (0,)))
    ends = [a - b if isinstance(a, int) and isinstance(b, int) else 0 for a, b in zip(after, before, strict=True)]
    return (*([0] * len(ends)), *ends)


def _count_up(facts: Facts, node: onnx.NodeProto, operand: int) -> Values:
    return tuple(range(facts.length(node.input[operand]) or 1))


def _repeated(value: int) -> Rule:
    return lambda facts, node, operand: (value,) * (facts.length(node.input[operand]) or 1)


def _ends(facts: Facts, node: onnx.NodeProto, operand: int) -> Values:
    dims = facts.dims(node.output[0])
    count = facts.length(node.input[operand]) or len(dims or (0,))
    if dims is None or len(dims) < count or any(d is None for d in dims[:count]):
        return (_FAR,) * count
    return tuple(d for d in dims[:count] if d is not None)


def _squeezed(facts: Facts, node: onnx.NodeProto, operand: int) -> Values:
    dims = facts.dims(node.input[0]) or ()
    ones = tuple(i for i, d in enumerate(dims) if d == 1)
    return ones[: facts.length(node.input[operand]) or 1] or (0,)


def _size_along_axis(unknown: int) -> Rule:
    """The size of the output along the operator's axis."""

    def rule(facts: Facts, node: onnx.NodeProto, operand: int) -> Values:
        del operand
        dims = facts.dims(node.output[0])
        axis = attribute(node, "axis", -1)
        size = dims[axis] if dims and -len(dims) <= axis < len(dims) else None
        return (unknown if size is None else size,)

    return rule


def _equal_parts(facts: Facts, node: onnx.NodeProto, operand: int) -> Values:
    """As many equal parts as there are entries, the last one taking the rest; parts of one where there is one entry."""
    count = facts.length(node.input[operand]) or 1
    whole, axis = facts.dims(node.input[0]), attribute(node, "axis", 0)
    size = whole[axis] if whole and -len(whole) <= axis < len(whole) else None
    if count == 1 or not isinstance(size, int):
        return (1,) * count
    return (*([size // count] * (count - 1)), size - size // count * (count - 1))


def _image(facts: Facts, node: onnx.NodeProto, operand: int) -> Values:
    dims = facts.dims(node.output[0])
    if dims is None or len(dims) < 3:
        return (_UNKNOWN_SIZE,) * (facts.length(node.input[operand]) or 2)
    return tuple(_UNKNOWN_SIZE if d is None else d for d in dims[2:])


def _parts(facts: Facts, node: onnx.NodeProto, operand: int) -> Values:
    del operand
    axis = attribute(node, "axis", 0)
    made = []
    whole = facts.dims(node.input[0])
    for name in node.output:
        dims = facts.dims(name)
        made.append(dims[axis] if dims and axis < len(dims) else None)
    if all(isinstance(d, int) for d in made):
        return tuple(d for d in made if d is not None)
    total = whole[axis] if whole and axis < len(whole) else None
    if isinstance(total, int):
        each = -(-total // len(made))
        return (*([each] * (len(made) - 1)), total - each * (len(made) - 1))
    return (1,) * len(made)


SETTINGS: dict[tuple[str, int], Rule] = {
    ("Reshape", 1): _output_shape,
    ("Expand", 1): _output_shape,
    ("CenterCropPad", 1): _output_shape,
    ("AffineGrid", 1): _new_shape,
    ("ConstantOfShape", 0): _new_shape,
    ("MaxUnpool", 2): _new_shape,
    ("Resize", 3): _output_shape,
    ("Resize", 2): _ratio,
    ("Resize", 1): _repeated(0),
    ("Upsample", 1): _ratio,
    ("Tile", 1): _ratio,
    ("Pad", 1): _pads,
    ("Pad", 3): _count_up,
    ("Slice", 1): _repeated(0),
    ("Slice", 2): _ends,
    ("Slice", 3): _count_up,
    ("Slice", 4): _repeated(1),
    ("Squeeze", 1): _squeezed,
    ("Unsqueeze", 1): _count_up,
    ("Split", 1): _parts,
    ("SplitToSequence", 1): _equal_parts,
    ("Col2Im", 1): _image,
    ("TopK", 1): _size_along_axis(1),
    ("OneHot", 1): _size_along_axis(_UNKNOWN_SIZE),
    ("OneHot", 2): _always(0, 1),
    ("Range", 0): _always(0),
    ("Range", 1): _new_shape,
    ("Range", 2): _always(1),
    ("CumSum", 1): _always(0),
    ("CumProd", 1): _always(0),
    ("Trilu", 1): _always(0),
    ("Dropout", 1): _always(0.5),
    ("Dropout", 2): _always(0),
    ("Loop", 1): _always(1),
    ("NonMaxSuppression", 2): _always(3),
    ("SequenceAt", 1): _always(0),
    ("SequenceErase", 1): _always(0),
    ("SequenceInsert", 2): _always(0),
    ("DFT", 1): _new_shape,
    ("DFT", 2): _always(1),
    ("STFT", 1): _always(4),
    ("STFT", 3): _always(8),
    ("HannWindow", 0): _new_shape,
    ("HammingWindow", 0): _new_shape,
    ("BlackmanWindow", 0): _new_shape,
    ("MelWeightMatrix", 0): _always(8),
    ("MelWeightMatrix", 1): _always(16),
    ("MelWeightMatrix", 2): _always(8192),
    ("MelWeightMatrix", 3): _always(0),
    ("MelWeightMatrix", 4): _always(4096),
    **{
        (f"Reduce{kind}", 1): _count_up
        for kind in ("Sum", "Mean", "Max", "Min", "Prod", "L1", "L2", "LogSum", "LogSumExp", "SumSquare")
    },
}
"""(operator, operand) -> its values in the example."""
