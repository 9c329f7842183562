"""ONNX models as data: their interface, their validity. The only code besides adapters that touches ONNX protos."""
