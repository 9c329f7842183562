"""Finds the operator, the pass or the kernel that introduces an error; arrays and protocols only."""
