"""`onnxslim.slim` with its defaults: its optimizations and shape inference, repeated until nothing changes."""

from __future__ import annotations

import onnx
import onnxslim
from onnxslim.core.optimization import OptimizationSettings
from onnxslim.core.pattern.registry import DEFAULT_FUSION_PATTERNS

from trueport.adapters.converters._onnx_to_onnx import OnnxToOnnx, PartsOff
from trueport.adapters.protocols import ConverterOptions, Switches

_SHAPES, _FUSION = "shape_inference", "graph_fusion"


class OnnxSlim(OnnxToOnnx):
    """The slimmer; it folds constants with ONNX Runtime, so that is part of its versions."""

    name = "onnxslim"
    packages = ("onnxslim", "onnxruntime")

    def optimize(self, model: onnx.ModelProto, target_opset: int | None) -> onnx.ModelProto:
        """Returns the result of `onnxslim.slim`."""
        del target_opset
        return onnxslim.slim(model)

    def switches(self, model: onnx.ModelProto, options: ConverterOptions) -> Switches | None:
        """Returns its optimizations, each of its fusions by its name, and shape inference."""
        del options
        whole = tuple(key for key in _optimizations() if key != _FUSION)
        return PartsOff(model, (*whole, *DEFAULT_FUSION_PATTERNS, _SHAPES), self._without)

    def _without(self, model: onnx.ModelProto, off: frozenset[str]) -> onnx.ModelProto:
        fusions = [name for name in DEFAULT_FUSION_PATTERNS if name in off]
        optimizations = [key for key in _optimizations() if key in off]
        if len(fusions) == len(DEFAULT_FUSION_PATTERNS):
            optimizations.append(_FUSION)
        return onnxslim.slim(
            model,
            skip_fusion_patterns=fusions or None,
            skip_optimizations=optimizations or None,
            no_shape_infer=_SHAPES in off,
        )


def _optimizations() -> tuple[str, ...]:
    names: list[str] = OptimizationSettings.keys()
    return tuple(names)
