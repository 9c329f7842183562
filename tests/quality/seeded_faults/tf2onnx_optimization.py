"""Faults in tf2onnx's optimizers. One that raises is left out by tf2onnx itself and so harms nobody."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from tests.quality.seeded_faults.fault import OPTIMIZATION, Symptom
from tests.quality.seeded_faults.tf2onnx_fault import TensorFlowFault, Wrap, acting, replacing, returning
from tests.quality.seeded_faults.tf2onnx_subjects import arithmetic, network

_OPTIMIZERS = "tf2onnx.optimizer"


def _after(class_name: str, module: str, edit: Callable[[Any], None], *, told: bool, round_: int = 0) -> Any:
    """Edits the graph at the end of an optimizer in one round, which may say that it changed something."""

    def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
        def optimize(self: Any, graph: Any) -> Any:
            graph = original(self, graph)
            if self.opt_iteration == round_:
                edit(graph)
                self.graph_been_opt = self.graph_been_opt or told
            return graph

        return optimize

    return lambda: replacing(f"{_OPTIMIZERS}.{module}", f"{class_name}._optimize", wrap)


def _of(graph: Any, operator: str) -> Any:
    return next(node for node in graph.get_nodes() if node.type == operator)


def _turn(graph: Any) -> None:
    node = _of(graph, "Sub")
    graph.replace_inputs(node, list(node.input)[::-1])


def _steepen(graph: Any) -> None:
    _of(graph, "LeakyRelu").set_attr("alpha", 0.01)


def _orphan(graph: Any) -> None:
    graph.remove_node(_of(graph, "Tanh").name)


def _swap_outputs(graph: Any) -> None:
    graph.outputs[0], graph.outputs[1] = graph.outputs[1], graph.outputs[0]


def _drop_transposition(graph: Any) -> None:
    node = _of(graph, "Transpose")
    graph.replace_all_inputs(node.output[0], node.input[0])
    graph.remove_node(node.name)


def _enlarge(folded: list[np.ndarray]) -> list[np.ndarray]:
    """What was folded, one per cent too large."""
    return [value * value.dtype.type(1.01) if value.dtype.kind == "f" else value for value in folded]


def _always(_: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args, **kwargs: True


def _inside(module: str, path: str, wrap: Wrap) -> Callable[[], AbstractContextManager[None]]:
    return lambda: replacing(f"{_OPTIMIZERS}.{module}", path, wrap)


def _fault(
    name: str, plant: Any, build: Callable[[], Any], where: str, note: str, symptom: Symptom = "wrong-model"
) -> TensorFlowFault:
    return TensorFlowFault(
        f"{OPTIMIZATION}-{name}", OPTIMIZATION, symptom, plant, build, note, checkpoint=f"ONNX after {where}"
    )


_IDENTITY = ("IdentityOptimizer", "identity_optimizer")
_RESHAPE = ("ReshapeOptimizer", "reshape_optimizer")

FAULTS = (
    _fault(
        "folds-wrongly", _inside("const_fold_optimizer", "_func_map[Reshape]", returning(_enlarge)), network,
        "fold_constants", "the offset of a normalization grows when it is folded",
    ),
    _fault(
        "drops-a-transposition", _after("TransposeOptimizer", "transpose_optimizer", _drop_transposition, told=False),
        arithmetic, "optimize_transpose", "a transposition is taken for one that does nothing",
    ),
    _fault(
        "merges-wrongly",
        _inside("merge_duplicated_nodes_optimizer", "MergeDuplicatedNodesOptimizer._have_equal_attr", _always),
        arithmetic, "merge_duplication", "nodes with different attributes are taken for duplicates",
    ),
    _fault(
        "turns-operands", _after(*_IDENTITY, _turn, told=True), arithmetic, "remove_identity",
        "operands change places",
    ),
    _fault(
        "loses-a-slope-silently", _after(*_RESHAPE, _steepen, told=False), network, "reshape_optimizer",
        "an optimizer changes the graph and does not say so",
    ),
    _fault(
        "swaps-outputs", _after("BackToBackOptimizer", "back_to_back_optimizer", _swap_outputs, told=True), network,
        "remove_back_to_back", "the outputs change places",
    ),
    _fault(
        "wrong-in-the-second-round", _after(*_IDENTITY, _turn, told=True, round_=1), arithmetic, "all passes",
        "an optimizer is right in its first round only",
    ),
    _fault(
        "removes-a-needed-node", _after("LoopOptimizer", "loop_optimizer", _orphan, told=True), arithmetic,
        "loop_optimizer", "a node is removed whose value is needed", "crash",
    ),
    acting(
        OPTIMIZATION, "exits", f"{_OPTIMIZERS}.einsum_optimizer", "EinsumOptimizer._optimize", arithmetic,
        "an optimizer ends the process",
    ),
)  # fmt: skip
