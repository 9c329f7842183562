"""One node of a TorchScript trace made wrong, in the graph that the exporter traced."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

from torch.onnx._internal.torchscript_exporter import utils as exporter

from tests.quality.localization.bench import Bench
from tests.quality.localization.capture_faults import Site
from tests.quality.seeded_faults.fault import replaced

_DISPATCHED = {
    "softmax": "_softmax", "layer_norm": "native_layer_norm", "gelu": "gelu", "tanh": "tanh", "relu": "relu",
    "add": "add", "sub": "sub", "mul": "mul", "div": "div", "silu": "silu", "sigmoid": "sigmoid", "pow": "pow",
    "relu_": "relu_", "batch_norm": "native_batch_norm", "select": "select",
}  # fmt: skip
"""Operator of a trace -> what a run of it calls; told apart by their order, which is the same."""
_NEAR = {"tanh": "sigmoid", "relu": "sigmoid", "silu": "relu", "sigmoid": "hardsigmoid", "add": "sub", "sub": "add"}


def _constant(graph: Any, node: Any, place: int, change: Callable[[Any], Any]) -> bool:
    inputs = list(node.inputs())
    if place >= len(inputs) or inputs[place].node().kind() != "prim::Constant":
        return False
    value = inputs[place].toIValue()
    if value is None or isinstance(value, bool):
        return False
    new = graph.insertConstant(change(value))
    new.node().moveBefore(node)
    node.replaceInput(place, new)
    return True


def _other_axis(graph: Any, node: Any) -> bool:
    return node.kind() == "aten::softmax" and _constant(graph, node, 1, lambda _: 1)


def _larger_epsilon(graph: Any, node: Any) -> bool:
    place = {"aten::layer_norm": 4, "aten::batch_norm": 7}.get(node.kind())
    return place is not None and _constant(graph, node, place, lambda v: v * 1000)


def _swapped_operands(graph: Any, node: Any) -> bool:
    del graph
    if node.kind() not in ("aten::sub", "aten::div"):
        return False
    first, second = list(node.inputs())[:2]
    if not all(v.type().kind() == "TensorType" for v in (first, second)):
        return False
    node.replaceInput(0, second)
    node.replaceInput(1, first)
    return True


def _other_factor(graph: Any, node: Any) -> bool:
    return node.kind() in ("aten::add", "aten::sub") and _constant(graph, node, 2, lambda _: 2)


def _other_form(graph: Any, node: Any) -> bool:
    other = {"none": "tanh", "tanh": "none"}
    return node.kind() == "aten::gelu" and _constant(graph, node, 1, lambda v: other[v])


def _other_index(graph: Any, node: Any) -> bool:
    return node.kind() == "aten::select" and _constant(graph, node, 2, lambda v: 1 if v == 0 else v - 1)


def _near_operator(graph: Any, node: Any) -> bool:
    other = _NEAR.get(node.kind().removeprefix("aten::"))
    if other is None:
        return False
    made = graph.create(f"aten::{other}", list(node.inputs()), 1)
    made.insertBefore(node)
    made.copyMetadata(node)
    made.output().setType(node.output().type())
    node.output().replaceAllUsesWith(made.output())
    node.destroy()
    return True


MUTATORS: dict[str, Callable[[Any, Any], bool]] = {
    "other-axis": _other_axis, "larger-epsilon": _larger_epsilon, "swapped-operands": _swapped_operands,
    "other-factor": _other_factor, "other-form": _other_form, "other-index": _other_index,
    "near-operator": _near_operator,
}  # fmt: skip


def sites(bench: Bench, number: int, mutator: str, seed: int) -> list[Site]:
    """Returns the nodes of the traced graph that a mutator fits and that a run can be asked for."""
    del seed
    graph: Any = getattr(bench.recorded[number].executable, "_function").graph.copy()  # noqa: B009 - what it runs
    ran = bench.run_of(bench.recorded[number]).nodes
    calls: dict[str, list[Any]] = {}
    for call in ran:
        calls.setdefault(call.operator.split(".")[1], []).append(call)
    count = Counter(n.kind().removeprefix("aten::") for n in graph.nodes())
    found, seen = [], Counter[str]()
    for place, node in enumerate(list(graph.nodes())):
        kind = node.kind().removeprefix("aten::")
        same = calls.get(_DISPATCHED.get(kind, ""), [])
        order, seen[kind] = seen[kind], seen[kind] + 1
        if len(same) == count[kind] and MUTATORS[mutator](graph, node):
            call = same[order]
            found.append(Site(call.operator, call.name, call.outputs[0], partial(_tracing, place, mutator)))
    return found


def _tracing(place: int, mutator: str) -> AbstractContextManager[None]:
    def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
        def create(model: Any, args: Any) -> Any:
            result = original(model, args)
            graph = result[0]
            if not MUTATORS[mutator](graph, list(graph.nodes())[place]):
                raise LookupError(f"{mutator} does not fit node {place} of the trace")
            return result

        return create

    return replaced(exporter, "_create_jit_graph", wrap)
