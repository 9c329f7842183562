"""Evaluation of ONNX graphs in float64."""

from trueport.adapters.float64.onnx.attributes import Constant
from trueport.adapters.float64.onnx.evaluator import Float64Evaluator
from trueport.adapters.float64.onnx.registry import MissingKernel, Node

__all__ = ["Constant", "Float64Evaluator", "MissingKernel", "Node"]
