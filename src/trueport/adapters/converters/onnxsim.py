"""`onnxsim.simplify` with its defaults: passes and constant folding until nothing changes, in one native call."""

from __future__ import annotations

import onnx
import onnxsim

from trueport.adapters.converters._onnx_to_onnx import OnnxToOnnx


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
