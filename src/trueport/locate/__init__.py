"""Where a failure comes from: the part of an optimizer, the operator or the sequence that is needed for it to show.

Works on arrays and protocols only, so that each search is the same for every tool.
"""
