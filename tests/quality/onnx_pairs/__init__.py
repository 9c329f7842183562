"""Pairs of ONNX files that mean the same, and pairs that do not: what `trueport compare` is tried with."""
