"""`onnxscript.optimizer.optimize`, and its passes one by one.

The passes and their order are those of `onnxscript.optimizer._optimizer.optimize_ir` (onnxscript 0.7). Where another
release has others, only the model of the plain call is looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import onnx
import onnx_ir as ir
import onnx_ir.passes.common as common
import onnxscript.optimizer
from onnxscript import rewriter
from onnxscript.optimizer import _constant_folding as folding

from trueport.adapters.converters._onnx_to_onnx import OnnxToOnnx

_ROUNDS = 2
_FOLD, _REWRITE, _UNUSED = "constants folded", "patterns rewritten", "unused parts removed"
_ROUND = (_FOLD, _REWRITE, _UNUSED)
_LAST: tuple[tuple[str, Callable[[], Any]], ...] = (
    ("unused nodes removed", common.RemoveUnusedNodesPass),
    ("constants lifted", lambda: common.LiftConstantsToInitializersPass(lift_all_constants=True, size_limit=0)),
    ("initializers of subgraphs lifted", common.LiftSubgraphInitializersToMainGraphPass),
    ("initializers deduplicated", common.DeduplicateInitializersPass),
    ("common subexpressions eliminated", common.CommonSubexpressionEliminationPass),
    ("outputs fixed", common.OutputFixPass),
    ("names fixed", common.NameFixPass),
)


class OnnxScriptOptimizer(OnnxToOnnx):
    """The optimizer that `torch.onnx` uses as well."""

    name = "onnxscript-optimizer"
    packages = ("onnxscript", "onnx-ir")
    passes = (
        "functions inlined",
        *(f"{name}, round {number + 1}" for number in range(_ROUNDS) for name in _ROUND),
        *(name for name, _ in _LAST),
    )

    def load(self, model: onnx.ModelProto) -> onnx.ModelProto:
        """Returns the model after a way through onnxscript's own representation."""
        return ir.serde.serialize_model(ir.serde.deserialize_model(model))

    def optimize(self, model: onnx.ModelProto, target_opset: int | None) -> onnx.ModelProto:
        """Returns the result of `onnxscript.optimizer.optimize`."""
        del target_opset
        return onnxscript.optimizer.optimize(model)

    def steps(self, model: onnx.ModelProto) -> Iterator[onnx.ModelProto]:
        """Yields the model after each pass; rounds after one that changed nothing change nothing."""
        working = ir.serde.deserialize_model(model)
        common.InlinePass()(working)
        yield ir.serde.serialize_model(working)
        changes = True
        for _ in range(_ROUNDS):
            changed = False
            for group in _round():
                for one in group if changes else ():
                    changed = one(working).modified or changed
                yield ir.serde.serialize_model(working)
            changes = changed
        for _, make in _LAST:
            make()(working)
            yield ir.serde.serialize_model(working)


def _round() -> Iterator[tuple[Any, ...]]:
    """The passes of one round, grouped as `_ROUND` names them, with the optimizer's default settings."""
    yield (
        folding.FoldConstantsPass(
            shape_inference=True,
            input_size_limit=folding.DEFAULT_CONSTANT_FOLD_INPUT_SIZE_LIMIT,
            output_size_limit=folding.DEFAULT_CONSTANT_FOLD_OUTPUT_SIZE_LIMIT,
            should_fold=lambda _: None,
        ),
    )
    yield (rewriter.RewritePass(rewriter._DEFAULT_REWRITE_RULES),)
    yield (
        common.RemoveUnusedNodesPass(),
        common.RemoveUnusedFunctionsPass(),
        common.RemoveUnusedOpsetsPass(),
    )
