"""`trueport check`: one model through its converters and runtimes."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from typing import Any

import click
from click.core import ParameterSource

from trueport import api
from trueport.cli.check_options import ConfiguredCommand, options_from, show, with_options
from trueport.cli.output import verdict_exit_code
from trueport.cli.progress import ProgressDisplay
from trueport.core.errors import UsageError
from trueport.core.options import CheckOptions

# Options of the conversion, which a candidate has behind it.
_CONVERSION = {"converter": "--converter", "opset": "--opset"}


@click.command(cls=ConfiguredCommand)
@click.argument("model")
@with_options()
@click.pass_context
def check(ctx: click.Context, /, model: str, **given: Any) -> int:
    """Check that MODEL survives its conversion, and name the stage that broke it.

    MODEL is file.py:NAME (a model of PyTorch, Keras, TensorFlow or ONNX, or a function that makes one; NAME is model
    where left out), model.pt2, model.onnx, model.keras, a SavedModel or Hugging Face folder, or zoo:FRAMEWORK/NAME.
    An ONNX file without --converter is checked in the runtime as it is. Defaults can be set in pyproject.toml under
    [tool.trueport].
    """
    if given["verbose"] and given["quiet"]:
        raise UsageError("expected --verbose or --quiet, got both")
    options = options_from(given)
    _refuse_conversion_options(ctx, options)
    # What a model prints when it is not isolated belongs beside the result, not into it.
    with redirect_stdout(sys.stderr), ProgressDisplay(enabled=not given["quiet"]) as progress:
        result = api.check_path(model, options, on_event=progress.on_event)
    show(result, given["json_target"], verbose=given["verbose"], quiet=given["quiet"])
    return verdict_exit_code(result, given["fail_on"])


def _refuse_conversion_options(ctx: click.Context, options: CheckOptions) -> None:
    """A candidate was converted elsewhere; an option that silently does nothing would mislead."""
    if options.candidate is None:
        return
    for name, option in _CONVERSION.items():
        if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise UsageError(f"{option} is for a conversion and does nothing with --candidate; leave one of them out")
