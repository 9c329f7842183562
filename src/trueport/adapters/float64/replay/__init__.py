"""Graphs of any framework replayed operator by operator in float64: noise, decisions, floors.

A dialect says what the operators of one framework are like; everything else is the same for ONNX and TensorFlow.
"""
