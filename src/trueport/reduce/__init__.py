"""The smallest program that still shows a failure: delta debugging over a program's nodes, then over its details.

The engine knows no framework: a `Program` says what can be taken away, and whoever calls the engine says whether a
program is still interesting.
"""
