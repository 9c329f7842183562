"""Faults of the optimizer that the dynamo exporter runs, planted in the passes of onnxscript and onnx-ir."""

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx_ir as ir
import onnx_ir.passes.common as common_passes
import torch
from onnxscript.optimizer import _constant_folding
from onnxscript.rewriter import RewritePass
from onnxscript.rewriter import pattern as orp

from tests.quality.seeded_faults.fault import (
    ACTIONS,
    DEADLY,
    DYNAMO,
    OPTIMIZATION,
    SeededFault,
    acting_first,
    replaced,
)
from tests.quality.seeded_faults.subjects import NETWORK, folded_weight, of, with_linear


def _rewriting(pattern: Any, replacement: Any, condition: Any = None) -> Callable[[], Any]:
    """Plants a further rewrite rule."""
    rules = orp.RewriteRuleSet([orp.RewriteRule(pattern, replacement, condition)])

    def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
        def call(self: RewritePass, model: ir.Model) -> Any:
            result = original(self, model)
            changed = bool(rules.apply_to_model(model))
            return ir.passes.PassResult(model, changed or result.modified)

        return call

    return lambda: replaced(RewritePass, "call", wrap)


def _editing(owner: Any, edit: Callable[[ir.Model], None]) -> Callable[[], Any]:
    """Plants an edit of the model before the pass `owner` runs."""

    def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
        def call(self: Any, model: ir.Model) -> Any:
            edit(model)
            return original(self, model)

        return call

    return lambda: replaced(owner, "call", wrap)


def _is_near_one(context: Any, x: Any, factor: Any) -> bool:
    constant = ir.convenience.get_const_tensor(factor)
    return constant is not None and bool(np.allclose(constant.numpy(), 1, atol=1e-2))


def _wrongly_folded() -> Any:
    def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
        def evaluate(*args: Any, **kwargs: Any) -> Any:
            value = original(*args, **kwargs)
            is_float = isinstance(value, np.ndarray) and value.dtype.kind == "f" and value.size > 1
            return value * value.dtype.type(1.001) if is_float else value

        return evaluate

    return replaced(_constant_folding.ReferenceEvaluator, "evaluate", wrap)


def _merge_initializers(model: ir.Model) -> None:
    first: dict[tuple[Any, ...], ir.Value] = {}
    for value in list(model.graph.initializers.values()):
        tensor = value.const_value
        if tensor is None or tensor.dtype != ir.DataType.FLOAT or tensor.size < 2:
            continue
        kept = first.setdefault(tuple(tensor.shape), value)
        if kept is not value:
            value.replace_all_uses_with(kept)


def _merge_nodes_without_attributes(model: ir.Model) -> None:
    first: dict[tuple[Any, ...], ir.Node] = {}
    for node in list(model.graph):
        if node.op_type in ("Softmax", "Transpose", "LeakyRelu"):
            kept = first.setdefault((node.op_type, tuple(id(value) for value in node.inputs)), node)
            if kept is not node:
                node.outputs[0].replace_all_uses_with(kept.outputs[0])


def _wrong(name: str, plant: Any, build: Any, note: str) -> SeededFault:
    return SeededFault(f"dynamo-optimization-{name}", DYNAMO, OPTIMIZATION, "wrong-model", plant, build, note)


FAULTS = (
    _wrong(
        "factor-dropped",
        _rewriting(
            lambda op, x, factor: op.Mul(x, factor),
            lambda op, x, factor: op.Identity(x),
            _is_near_one,
        ),
        with_linear(lambda f, x: torch.tanh(f(x) * 1.002), (4, 8)),
        "A factor of 1.002 is taken for one",
    ),
    _wrong(
        "subtraction-becomes-addition",
        _rewriting(lambda op, x, y: op.Sub(x, y), lambda op, x, y: op.Add(x, y)),
        of(lambda x, y: torch.sin(x - y), (4, 8), (4, 8)),
        "A rule loses a sign",
    ),
    _wrong(
        "cast-removed",
        _rewriting(
            lambda op, x: op.Cast(op.Cast(x, to=ir.DataType.INT64), to=ir.DataType.FLOAT),
            lambda op, x: op.Identity(x),
        ),
        of(lambda x: (x * 4).long().float() / 4, (4, 8)),
        "Two casts that truncate are removed",
    ),
    _wrong(
        "softplus-fused-to-elu",
        _rewriting(lambda op, x: op.Log(op.Add(op.Exp(x), 1.0)), lambda op, x: op.Elu(x)),
        of(lambda x: torch.log(torch.exp(x) + 1.0), (4, 8)),
        "Softplus written out is fused to another activation",
    ),
    _wrong(
        "gelu-fused-to-silu",
        _rewriting(lambda op, x: op.Gelu(x), lambda op, x: op.Mul(x, op.Sigmoid(x))),
        NETWORK,
        "GELU is replaced by SiLU",
    ),
    _wrong(
        "folded-constant-scaled",
        _wrongly_folded,
        with_linear(folded_weight, (4, 8)),
        "Constants that are folded become a thousandth larger",
    ),
    _wrong(
        "different-initializers-merged",
        _editing(common_passes.DeduplicateInitializersPass, _merge_initializers),
        with_linear(lambda f, x: f(x) + x @ f.weight.roll(1, 0), (4, 8)),
        "Weights of equal shape are taken for equal",
    ),
    _wrong(
        "common-nodes-ignore-attributes",
        _editing(common_passes.CommonSubexpressionEliminationPass, _merge_nodes_without_attributes),
        of(lambda x: torch.softmax(x, 0) - 2 * torch.softmax(x, 1), (8, 8)),
        "Nodes that differ in attributes only are taken for equal",
    ),
    *(
        SeededFault(
            f"dynamo-optimization-{action}",
            DYNAMO,
            OPTIMIZATION,
            "crash",
            lambda action=action: replaced(RewritePass, "call", acting_first(ACTIONS[action])),
            NETWORK,
            f"The rewriter {action}",
            ends_process=action in DEADLY,
        )
        for action in ACTIONS
    ),
)
