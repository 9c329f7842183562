"""`onnxslim.slim` with its defaults: its optimizations and shape inference, repeated until nothing changes."""

from __future__ import annotations

import onnx
import onnxslim

from trueport.adapters.converters._onnx_to_onnx import OnnxToOnnx


class OnnxSlim(OnnxToOnnx):
    """The slimmer; it folds constants with ONNX Runtime, so that is part of its versions."""

    name = "onnxslim"
    packages = ("onnxslim", "onnxruntime")

    def optimize(self, model: onnx.ModelProto, target_opset: int | None) -> onnx.ModelProto:
        """Returns the result of `onnxslim.slim`."""
        del target_opset
        return onnxslim.slim(model)
