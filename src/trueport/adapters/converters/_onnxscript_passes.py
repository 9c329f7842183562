"""The passes of onnxscript's optimizer, which two converters use, and which parts of them can be left out.

The passes and their order are those of `onnxscript.optimizer._optimizer.optimize_ir` (onnxscript 0.7), and after them
for `torch.onnx` those of `onnxscript.rewriter.onnx_fusions.fuse`. Where another release has others, the model that they
make is not that of the plain call, and is not used.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import onnx
import onnx_ir as ir
import onnx_ir.passes.common as common
from onnxscript import rewriter
from onnxscript.optimizer import _constant_folding as folding
from onnxscript.rewriter.rules.fusion import _gqa, _rms_normalization, _rotary_embedding

from trueport.adapters.converters._onnx_to_onnx import copied, serialized, silenced
from trueport.adapters.protocols import Executed, Switches
from trueport.onnxgraph.nodes import all_nodes

_ROUNDS = 2
_INLINE = "functions inlined"
_FOLD, _REWRITE, _UNUSED = "constants folded", "patterns rewritten", "unused parts removed"
_OTHERS = f"{_FOLD}: other operators"
_LAST: tuple[tuple[str, Callable[[], Any]], ...] = (
    ("unused nodes removed", common.RemoveUnusedNodesPass),
    ("constants lifted", lambda: common.LiftConstantsToInitializersPass(lift_all_constants=True, size_limit=0)),
    ("initializers of subgraphs lifted", common.LiftSubgraphInitializersToMainGraphPass),
    ("initializers deduplicated", common.DeduplicateInitializersPass),
    ("common subexpressions eliminated", common.CommonSubexpressionEliminationPass),
    ("outputs fixed", common.OutputFixPass),
    ("names fixed", common.NameFixPass),
)
_FUSIONS: tuple[tuple[str, Callable[[ir.Model], Any]], ...] = (
    ("fused: RMSNormalization", _rms_normalization.fuse_rms_normalization),
    ("fused: RotaryEmbedding", _rotary_embedding.fuse_rotary_embedding),
    ("fused: GQA", _gqa.fuse_gqa),
)
_FUSIONS_OPSET = 23
STEPS = (
    _INLINE,
    *(f"{name}, round {number + 1}" for number in range(_ROUNDS) for name in (_FOLD, _REWRITE, _UNUSED)),
    *(name for name, _ in _LAST),
)
"""Names of the steps of `steps`."""


class _Folding(folding.FoldConstantsPass):  # type: ignore[misc]  # onnxscript has no types
    """Constant folding that leaves operators of some types alone; with none of them it is the plain pass."""

    def __init__(self, left: Callable[[str], bool]) -> None:
        super().__init__(
            shape_inference=True,
            input_size_limit=folding.DEFAULT_CONSTANT_FOLD_INPUT_SIZE_LIMIT,
            output_size_limit=folding.DEFAULT_CONSTANT_FOLD_OUTPUT_SIZE_LIMIT,
            should_fold=lambda _: None,
        )
        self._left = left

    def process_node(self, node: ir.Node, is_function: bool) -> Any:
        """Returns what the node is replaced by, nothing for those that are left alone."""
        if self._left(node.op_type):
            return None
        return super().process_node(node, is_function)


def steps(working: ir.Model, off: frozenset[str] = frozenset(), folded: frozenset[str] = frozenset()) -> Iterator[str]:
    """Runs the passes on a model in place, and yields the name of each of `STEPS` after it.

    Args:
        working: the model.
        off: names of parts that are left out.
        folded: operators whose folding has a name of its own; the others share one.
    """
    if _INLINE not in off:
        common.InlinePass()(working)
    yield STEPS[0]
    changes = True
    for number in range(_ROUNDS):
        changed = False
        for name, group in _round(off, folded):
            for one in group if changes else ():
                changed = one(working).modified or changed
            yield f"{name}, round {number + 1}"
        changes = changed
    for name, make in _LAST:
        if name not in off:
            make()(working)
        yield name


def _round(off: frozenset[str], folded: frozenset[str]) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """The passes of one round, with the optimizer's default settings; a pass of which nothing is left is left out."""
    names = {*(f"{_FOLD}: {operator}" for operator in folded), _OTHERS}
    unfolded = not names <= off
    yield _FOLD, (_Folding(lambda op: (f"{_FOLD}: {op}" if op in folded else _OTHERS) in off),) if unfolded else ()
    rules = [rule for name, rule in _rules() if name not in off]
    yield _REWRITE, (rewriter.RewritePass(rules),) if rules else ()
    unused = (common.RemoveUnusedNodesPass(), common.RemoveUnusedFunctionsPass(), common.RemoveUnusedOpsetsPass())
    yield _UNUSED, () if _UNUSED in off else unused


@cache
def _rules() -> tuple[tuple[str, Any], ...]:
    """The default rewrite rules by their names; one without a name has that of the variable that holds it."""
    folder = "onnxscript.rewriter.rules.common."
    modules = [module for name, module in sorted(sys.modules.items()) if name.startswith(folder)]
    variables = [item for module in modules for item in vars(module).items()]
    # A rule for both orders of its operands is there as copies, which share what they replace by.
    held = {id(getattr(value, "_replacement_pattern", None)): name for name, value in variables}
    held |= {id(value): name for name, value in variables}
    found, counts = [], Counter[str]()
    for rule in rewriter._DEFAULT_REWRITE_RULES:
        name = f"{_REWRITE}: {rule.name or held.get(id(rule)) or held.get(id(rule._replacement_pattern), 'unnamed')}"
        counts[name] += 1
        found.append((name if counts[name] == 1 else f"{name} ({counts[name]})", rule))
    return tuple(found)


class _OnnxScriptSwitches:
    """The optimizer on one model."""

    def __init__(self, model: onnx.ModelProto, *, fusions: bool) -> None:
        self._model = copied(model)
        self._folded = frozenset(node.op_type for node in all_nodes(model))
        opset = next((o.version for o in model.opset_import if o.domain in ("", "ai.onnx")), None)
        self._fusions = _FUSIONS if fusions and opset == _FUSIONS_OPSET else ()
        self.names = (
            _INLINE,
            *(f"{_FOLD}: {operator}" for operator in sorted(self._folded)),
            _OTHERS,
            *(name for name, _ in _rules()),
            _UNUSED,
            *(name for name, _ in _LAST),
            *(name for name, _ in self._fusions),
        )

    def run(self, off: frozenset[str]) -> Executed:
        with silenced():
            working = ir.serde.deserialize_model(copied(self._model))
            for _ in steps(working, off, self._folded):
                pass
            for name, fuse in self._fusions:
                if name not in off:
                    fuse(working)
            return Executed(ir.serde.serialize_model(working))


def switches(
    model: onnx.ModelProto, plain: Callable[[onnx.ModelProto], onnx.ModelProto], *, fusions: bool = False
) -> Switches | None:
    """Returns the parts of the optimizer, or None where with all of them on they do not make the model of `plain`.

    Args:
        model: the model before optimization; it is not changed.
        plain: the optimizer as its users call it.
        fusions: the fusions that `torch.onnx` adds are among the parts.

    Raises:
        Exception: what the plain call raises where the parts do not raise too.
    """
    made = _OnnxScriptSwitches(model, fusions=fusions)
    try:
        whole = made.run(frozenset()).model
    except Exception:  # noqa: BLE001 - the plain call decides whether this is how the optimizer is
        whole = None
    try:
        with silenced():
            expected = plain(model)
    except Exception:
        if whole is None:
            return made
        raise
    return made if whole is not None and serialized(whole) == serialized(expected) else None
