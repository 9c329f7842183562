"""`onnx.version_converter.convert_version`: another opset, the same meaning."""

from __future__ import annotations

from typing import Any

import onnx
import onnx.version_converter

from trueport.adapters.converters._onnx_to_onnx import OnnxToOnnx
from trueport.adapters.protocols import ConverterOptions
from trueport.core.errors import UsageError


class OnnxVersionConverter(OnnxToOnnx):
    """Converts to the opset of the options, else to the subject's `target_opset`, else to the newest that onnx has."""

    name = "onnx-version-converter"
    optimized = "model of the opset asked for"

    def requested_opset(self, options: ConverterOptions, wanted: Any) -> int:
        """Returns the opset to convert to.

        Raises:
            UsageError: `target_opset` of the subject is no whole number.
        """
        if options.opset is not None:
            return options.opset
        if wanted is None:
            return int(onnx.defs.onnx_opset_version())
        if isinstance(wanted, bool) or not isinstance(wanted, int):
            raise UsageError(f"target_opset: expected the number of an opset, got {wanted!r}; give a whole number")
        return wanted

    def optimize(self, model: onnx.ModelProto, target_opset: int | None) -> onnx.ModelProto:
        """Returns the result of `onnx.version_converter.convert_version`."""
        assert target_opset is not None  # by `requested_opset`
        return onnx.version_converter.convert_version(model, target_opset)
