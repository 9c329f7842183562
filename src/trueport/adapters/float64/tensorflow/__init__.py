"""TensorFlow graphs in float64: the concrete function's graph is the tape, replayed node by node."""
