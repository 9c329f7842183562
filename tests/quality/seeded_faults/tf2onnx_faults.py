"""Faults planted in tf2onnx, by name: the tool runs with one of its own functions replaced."""

from tests.quality.seeded_faults import tf2onnx_conversion, tf2onnx_file, tf2onnx_load, tf2onnx_optimization
from tests.quality.seeded_faults.tf2onnx_fault import TensorFlowFault

_MODULES = (tf2onnx_load, tf2onnx_conversion, tf2onnx_optimization, tf2onnx_file)

FAULTS: dict[str, TensorFlowFault] = {fault.name: fault for module in _MODULES for fault in module.FAULTS}
