"""`onnxscript.optimizer.optimize`, its passes one by one, and its parts that can be switched off."""

from __future__ import annotations

from collections.abc import Iterator

import onnx
import onnx_ir as ir
import onnxscript.optimizer

from trueport.adapters.converters import _onnxscript_passes as parts
from trueport.adapters.converters._onnx_to_onnx import OnnxToOnnx, copied
from trueport.adapters.protocols import ConverterOptions, Switches


class OnnxScriptOptimizer(OnnxToOnnx):
    """The optimizer that `torch.onnx` uses as well."""

    name = "onnxscript-optimizer"
    packages = ("onnxscript", "onnx-ir")
    passes = parts.STEPS

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
        for _ in parts.steps(working):
            yield ir.serde.serialize_model(working)

    def switches(self, model: onnx.ModelProto, options: ConverterOptions) -> Switches | None:
        """Returns the passes, the rewrite rules, and the folding of each operator; None for other releases."""
        del options
        return parts.switches(model, lambda given: self.optimize(copied(given), None))
