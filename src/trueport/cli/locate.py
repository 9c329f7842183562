"""`trueport locate`: a check, shown by where the failure is introduced."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from typing import Any

import click

from trueport import api
from trueport.cli.check_options import ConfiguredCommand, options_from, with_options
from trueport.cli.output import print_text, verdict_exit_code, write_json
from trueport.cli.progress import ProgressDisplay
from trueport.core.errors import UsageError


@click.command(cls=ConfiguredCommand, short_help="Find the operator, pass or kernel that breaks MODEL.")
@click.argument("model")
@with_options(without=("no-locate",))
def locate(model: str, **given: Any) -> int:
    """Find the operator, the pass or the kernel that breaks MODEL.

    MODEL and the options are those of `trueport check`, and so are the JSON and the exit code; what is shown is where
    the failure is introduced, what was made of it, and what the search rests on.
    """
    if given["verbose"] and given["quiet"]:
        raise UsageError("expected --verbose or --quiet, got both")
    with redirect_stdout(sys.stderr), ProgressDisplay(enabled=not given["quiet"]) as progress:
        result = api.check_path(model, options_from(given), on_event=progress.on_event)
    if given["json_target"] is not None:
        write_json(result.to_json(), given["json_target"])
    if given["json_target"] != "-":
        from trueport.report.text import render, render_places

        print_text(render(result, verbose=True) if given["verbose"] else render_places(result))
    return verdict_exit_code(result, given["fail_on"])
