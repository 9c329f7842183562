"""`onnxsim.simplify` with its defaults: passes and constant folding until nothing changes, in one native call."""

from __future__ import annotations

import onnx
import onnxsim
from onnxsim import onnx_simplifier

from trueport.adapters.converters._onnx_to_onnx import OnnxToOnnx, PartsOff
from trueport.adapters.protocols import ConverterOptions, Switches

_FOLD, _SHAPES = "constant folding", "shape inference"


class OnnxSim(OnnxToOnnx):
    """The simplifier; it folds constants with ONNX Runtime, so that is part of its versions.

    It does not compare its result with the original unless asked to (`check_n`), and is not asked here.
    """

    name = "onnxsim"
    packages = ("onnxsim", "onnxruntime")

    def optimize(self, model: onnx.ModelProto, target_opset: int | None) -> onnx.ModelProto:
        """Returns the model that `onnxsim.simplify` returns first."""
        del target_opset
        simplified, _ = onnxsim.simplify(model)
        return simplified

    def switches(self, model: onnx.ModelProto, options: ConverterOptions) -> Switches | None:
        """Returns its optimizers, constant folding and shape inference; None where it does not list its optimizers."""
        del options
        listed = getattr(getattr(onnx_simplifier, "C", None), "_list_optimizers", None)
        if listed is None:
            return None
        return PartsOff(model, (*listed(), _FOLD, _SHAPES), self._without)

    def _without(self, model: onnx.ModelProto, off: frozenset[str]) -> onnx.ModelProto:
        simplified, _ = onnxsim.simplify(
            model,
            skipped_optimizers=sorted(off - {_FOLD, _SHAPES}),
            skip_constant_folding=_FOLD in off,
            skip_shape_inference=_SHAPES in off,
        )
        return simplified
