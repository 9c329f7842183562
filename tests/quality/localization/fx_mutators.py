"""One node of a captured PyTorch program made wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import fx

Mutator = Callable[[fx.Node, np.random.Generator], bool]
"""Changes the node; False where it does not fit."""
_aten = torch.ops.aten
_EPSILON = {"layer_norm": 4, "native_layer_norm": 4, "batch_norm": 7, "_native_batch_norm_legit_no_training": 6}
_NEAR: dict[Any, Any] = {
    _aten.relu.default: _aten.leaky_relu.default, _aten.tanh.default: _aten.sigmoid.default,
    _aten.sigmoid.default: _aten.hardsigmoid.default, _aten.silu.default: _aten.gelu.default,
    _aten.cos.default: _aten.sin.default, _aten.sin.default: _aten.cos.default, _aten.add.Tensor: _aten.sub.Tensor,
    _aten.sub.Tensor: _aten.add.Tensor, _aten.mean.dim: _aten.sum.dim_IntList, _aten.erf.default: _aten.tanh.default,
    _aten.rsqrt.default: _aten.reciprocal.default, _aten.relu_.default: _aten.elu_.default,
}  # fmt: skip


def _packet(node: fx.Node) -> str:
    return node.target._schema.name.removeprefix("aten::") if isinstance(node.target, torch._ops.OpOverload) else ""


def _set(node: fx.Node, place: int, value: Any) -> bool:
    if place >= len(node.args):
        return False
    node.args = (*node.args[:place], value, *node.args[place + 1 :])
    return True


def other_axis(node: fx.Node, rng: np.random.Generator) -> bool:
    """The first or second axis in place of the last."""
    return _packet(node) in ("softmax", "_softmax") and _set(node, 1, int(rng.integers(0, 2)))


def larger_epsilon(node: fx.Node, rng: np.random.Generator) -> bool:
    """A number under a root that is thousand times too large."""
    del rng
    place = _EPSILON.get(_packet(node))
    value: Any = None if place is None or place >= len(node.args) else node.args[place]
    return place is not None and value is not None and _set(node, place, float(value) * 1000)


def swapped_operands(node: fx.Node, rng: np.random.Generator) -> bool:
    """The second operand in place of the first."""
    del rng
    if _packet(node) not in ("sub", "div", "matmul", "pow") or not isinstance(node.args[1], fx.Node):
        return False
    node.args = (node.args[1], node.args[0], *node.args[2:])
    return True


def lost_bias(node: fx.Node, rng: np.random.Generator) -> bool:
    """No bias."""
    del rng
    fits = _packet(node) in ("linear", "conv2d", "conv1d", "layer_norm") and len(node.args) > 2
    place = 3 if _packet(node) == "layer_norm" else 2
    return fits and place < len(node.args) and node.args[place] is not None and _set(node, place, None)


def wrong_literal(node: fx.Node, rng: np.random.Generator) -> bool:
    """A number that is a hundredth too large."""
    del rng
    if _packet(node) not in ("mul", "add", "div", "sub", "pow", "scaled_dot_product_attention"):
        return False
    for place, value in enumerate(node.args):
        if isinstance(value, float) and value and np.isfinite(value) and abs(value) < 1e30:
            return _set(node, place, value * 1.01)
    if _packet(node) == "scaled_dot_product_attention" and isinstance(node.kwargs.get("scale"), float):
        node.kwargs = {**node.kwargs, "scale": node.kwargs["scale"] * 1.1}
        return True
    return False


def other_factor(node: fx.Node, rng: np.random.Generator) -> bool:
    """A sum whose second term counts a tenth more."""
    del rng
    if node.target not in (_aten.add.Tensor, _aten.sub.Tensor, _aten.addmm.default):
        return False
    if not isinstance(node.args[1], fx.Node):
        return False
    node.kwargs = {**node.kwargs, "alpha": 1.1 if node.target is _aten.addmm.default else 2}
    return True


def other_permutation(node: fx.Node, rng: np.random.Generator) -> bool:
    """Two axes exchanged."""
    if _packet(node) != "permute":
        return False
    order = list(node.args[1])  # type: ignore[arg-type]  # a list of axes
    a, b = rng.choice(len(order), 2, replace=False)
    order[a], order[b] = order[b], order[a]
    return _set(node, 1, order)


def other_index(node: fx.Node, rng: np.random.Generator) -> bool:
    """The neighbour of what was to be taken."""
    del rng
    if _packet(node) != "select":
        return False
    return _set(node, 2, 1 if node.args[2] == 0 else node.args[2] - 1)  # type: ignore[operator]  # a number there


def near_operator(node: fx.Node, rng: np.random.Generator) -> bool:
    """An operator that is nearly the right one."""
    del rng
    if _packet(node) == "gelu":
        exact = node.kwargs.get("approximate", "none") == "none"
        node.args, node.kwargs = node.args[:1], {"approximate": "tanh" if exact else "none"}
        return True
    if node.target not in _NEAR:
        return False
    node.target = _NEAR[node.target]
    return True


MUTATORS: dict[str, Mutator] = {
    "other-axis": other_axis, "larger-epsilon": larger_epsilon, "swapped-operands": swapped_operands,
    "lost-bias": lost_bias, "wrong-literal": wrong_literal, "other-factor": other_factor,
    "other-permutation": other_permutation, "other-index": other_index, "near-operator": near_operator,
}  # fmt: skip


def fits(node: fx.Node, mutator: str, seed: int) -> bool:
    """Whether a mutator can change a node; the node stays as it is."""
    if node.op != "call_function":
        return False
    kept = node.target, node.args, node.kwargs
    try:
        return MUTATORS[mutator](node, np.random.default_rng(seed))
    finally:
        node.target, node.args, node.kwargs = kept


def mutate(module: fx.GraphModule, name: str, mutator: str, seed: int) -> None:
    """Changes the node of this name in place.

    Raises:
        LookupError: the program has no such node, or the mutator does not fit it.
    """
    node = next((n for n in module.graph.nodes if n.name == name), None)
    if node is None or not MUTATORS[mutator](node, np.random.default_rng(seed)):
        raise LookupError(f"expected a node '{name}' that {mutator} fits, found {node}")
    module.recompile()
