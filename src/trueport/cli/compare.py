"""`trueport compare`: two ONNX files, whatever road lies between them."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from typing import Any

import click

from trueport import api
from trueport.cli import parameters
from trueport.cli.check_options import ConfiguredCommand, options_from, show, with_options
from trueport.cli.output import verdict_exit_code
from trueport.cli.progress import ProgressDisplay
from trueport.core.errors import UsageError

_OF_CONVERSIONS = ("candidate", "converter", "opset", "metric", "data", "trust-pickle")


@click.command(cls=ConfiguredCommand, short_help="Check that two ONNX files compute the same.")
@click.argument("reference", type=parameters.ExistingFile(".onnx"), metavar="REFERENCE.onnx")
@click.argument("candidate", type=parameters.ExistingFile(".onnx"), metavar="CANDIDATE.onnx")
@with_options(without=_OF_CONVERSIONS)
def compare(reference: str, candidate: str, **given: Any) -> int:
    """Compare two ONNX files: does CANDIDATE.onnx compute what REFERENCE.onnx computes?

    Inputs are paired by name, or by position where all names differ. Both files are evaluated in float64, and the
    candidate is run in the runtime.
    """
    if given["verbose"] and given["quiet"]:
        raise UsageError("expected --verbose or --quiet, got both")
    options = options_from({**given, "candidate": candidate})
    with redirect_stdout(sys.stderr), ProgressDisplay(enabled=not given["quiet"]) as progress:
        result = api.check_path(reference, options, on_event=progress.on_event)
    show(result, given["json_target"], verbose=given["verbose"], quiet=given["quiet"])
    return verdict_exit_code(result, given["fail_on"])
