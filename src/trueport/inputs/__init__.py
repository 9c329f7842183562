"""Draws the inputs of a check: the example, values of the same kind, edge regimes, and other sizes of dynamic axes."""

from trueport.inputs.draw import InputSet, draw_inputs, redraw
from trueport.inputs.spec import DynamicAxis, LeafSpec

__all__ = ["DynamicAxis", "InputSet", "LeafSpec", "draw_inputs", "redraw"]
