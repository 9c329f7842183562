"""The command line: parses, calls one library function, shows what it returned.

Commands are imported when they are named and rich when something is rendered, so that `trueport --help` costs little.
"""

from __future__ import annotations

from collections.abc import Sequence

from trueport.cli._group import LazyGroup

__all__ = ["cli", "main"]

cli = LazyGroup(
    name="trueport",
    help="Tells whether a converted deep-learning model still computes what the original computes.",
    epilog="Exit codes: 0 faithful, 1 a difference or crash was found, 2 usage, 3 nothing could be decided.",
    lazy={
        "check": (
            "trueport.cli.check:check",
            "Check that MODEL survives its conversion, and name the stage that broke it.",
        ),
        "compare": ("trueport.cli.compare:compare", "Check that two ONNX files compute the same."),
        "locate": ("trueport.cli.locate:locate", "Find the operator, pass or kernel that breaks MODEL."),
        "zoo": ("trueport.cli.zoo:zoo", "List the built-in models."),
    },
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line and returns its exit code.

    Args:
        arguments: without the program's name; None for those of this process.
    """
    return int(cli.main(arguments, prog_name="trueport", standalone_mode=False))
