"""`onnxoptimizer.optimize`, and its default passes one by one."""

from __future__ import annotations

from collections.abc import Iterator

import onnx
import onnxoptimizer

from trueport.adapters.converters._onnx_to_onnx import OnnxToOnnx, PartsOff
from trueport.adapters.protocols import ConverterOptions, Switches


class OnnxOptimizer(OnnxToOnnx):
    """The optimizer that was split off ONNX; its passes are named as it names them."""

    name = "onnxoptimizer"
    packages = ("onnxoptimizer",)
    passes = tuple(onnxoptimizer.get_fuse_and_elimination_passes())

    def optimize(self, model: onnx.ModelProto, target_opset: int | None) -> onnx.ModelProto:
        """Returns the result of `onnxoptimizer.optimize`."""
        del target_opset
        return onnxoptimizer.optimize(model)

    def steps(self, model: onnx.ModelProto) -> Iterator[onnx.ModelProto]:
        """Yields the model after each pass."""
        for name in self.passes:
            model = onnxoptimizer.optimize(model, [name])
            yield model

    def switches(self, model: onnx.ModelProto, options: ConverterOptions) -> Switches | None:
        """Returns the passes; with none of them the model still goes through the optimizer's own representation."""
        del options
        return PartsOff(model, self.passes, self._without)

    def _without(self, model: onnx.ModelProto, off: frozenset[str]) -> onnx.ModelProto:
        if not off:
            return self.optimize(model, None)
        return onnxoptimizer.optimize(model, [name for name in self.passes if name not in off])
