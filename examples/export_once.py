"""Exports the classifier by hand, as a user may have done long ago; writes classifier.onnx into the current folder."""

import torch
from classifier import model

module, args = model()
torch.onnx.export(module, args, "classifier.onnx", dynamic_shapes=model.dynamic_shapes, input_names=["features"])
