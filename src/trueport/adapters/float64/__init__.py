"""Evaluation in float64: PyTorch programs beside their real run, ONNX models by kernels of our own."""
