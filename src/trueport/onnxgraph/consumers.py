"""Which operators read the values of an input, followed through those that only move values."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

import onnx

from trueport.onnxgraph.nesting import Body, bodies, subgraphs

_MOVES = {
    "Identity": (0,), "Cast": (0,), "Reshape": (0,), "Squeeze": (0,), "Unsqueeze": (0,), "Transpose": (0,),
    "Flatten": (0,), "Slice": (0,), "Expand": (0,), "Tile": (0,), "Split": (0,), "Gather": (0,),
    "GatherElements": (0,), "GatherND": (0,), "Where": (1, 2), "Pad": (0,), "Dropout": (0,), "SequenceConstruct": None,
    "Concat": None, "ConcatFromSequence": (0,), "SequenceAt": (0,), "SequenceInsert": (0, 1), "SplitToSequence": (0,),
    "Optional": (0,), "OptionalGetElement": (0,), "DepthToSpace": (0,), "SpaceToDepth": (0,), "CenterCropPad": (0,),
    "Compress": (0,), "Trilu": (0,), "ReverseSequence": (0,), "CastLike": (0,), "MaxPool": (0,), "GlobalMaxPool": (0,),
    "ReduceMax": (0,), "ReduceMin": (0,), "Max": None, "Min": None,
}  # fmt: skip
"""Operator -> which of its operands it passes on; None for all of them."""
_MOST_STEPS = 20_000


@dataclass(frozen=True)
class Use:
    """A node that reads the values of an input.

    Attributes:
        node: the reader.
        operand: number of its input.
        direct: nothing but the value itself is read: no operator moved, cut or cast it before.
        is_main: the node stands in the main graph, where dimensions are known.
        casts: the element types to which the value was cast on its way.
    """

    node: onnx.NodeProto
    operand: int
    direct: bool
    is_main: bool
    casts: tuple[int, ...] = ()


class Readers:
    """The readers of every value of a model; building it takes time in proportion to the model."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self._functions = {(f.domain, f.name): f for f in model.functions}
        self._readers: dict[tuple[str, str], list[tuple[onnx.NodeProto, int, bool]]] = {}
        for body in bodies(model):
            scope = _scope(body)
            for node in body.nodes:
                for operand, name in enumerate(node.input):
                    if name:
                        self._readers.setdefault((scope, name), []).append((node, operand, body.parent is None))

    def of(self, name: str) -> list[tuple[onnx.NodeProto, int]]:
        """Returns the nodes of the main graph and the graphs in it that read a value, with the operand's number."""
        return [(node, operand) for node, operand, _ in self._readers.get(("", name), ())]

    def uses(self, name: str) -> Iterator[Use]:
        """Yields the uses of an input, nearest first; those behind more than 20000 steps are left out."""
        waiting: deque[tuple[str, str, bool, tuple[int, ...]]] = deque([("", name, True, ())])
        seen = {("", name)}
        for _ in range(_MOST_STEPS):
            if not waiting:
                return
            scope, value, direct, casts = waiting.popleft()
            for node, operand, outer in self._readers.get((scope, value), ()):
                yield Use(node, operand, direct, scope == "" and outer, casts)
                cast = (*casts, *(a.i for a in node.attribute if node.op_type == "Cast" and a.name == "to"))
                kept = direct and node.op_type == "Identity"
                for target in self._targets(scope, node, operand):
                    if target not in seen:
                        seen.add(target)
                        waiting.append((*target, kept or (node.op_type == "Cast" and direct), cast))

    def _targets(self, scope: str, node: onnx.NodeProto, operand: int) -> Iterator[tuple[str, str]]:
        """Yields the values that hold the operand's values after this node."""
        function = self._functions.get((node.domain, node.op_type))
        if function is not None:
            if operand < len(function.input):
                yield f"{function.domain}:{function.name}", function.input[operand]
            return
        if node.domain not in ("", "ai.onnx"):
            return
        if node.op_type in ("Loop", "Scan"):
            for graph in subgraphs(node):
                if operand < len(graph.input) and (node.op_type == "Scan" or operand >= 2):
                    yield scope, graph.input[operand].name
            return
        moved = _MOVES.get(node.op_type, ())
        if moved is None or operand in moved:
            yield from ((scope, name) for name in node.output if name)


def _scope(body: Body) -> str:
    """Returns '' for the main graph and all in it, else the function: names inside of functions are their own."""
    while body.parent is not None:
        body = body.parent
    return "" if body.function is None else f"{body.function.domain}:{body.function.name}"
