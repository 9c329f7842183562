"""`trueport zoo`: the built-in models, and what is missing for those that cannot be built here."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Protocol

import click

from trueport import api
from trueport.cli.output import print_line, print_text


class ZooRow(Protocol):
    """What is shown of a model of the zoo; `missing` is empty where the model can be built."""

    @property
    def name(self) -> str:
        """The name that `trueport check` takes."""

    @property
    def description(self) -> str:
        """One line."""

    @property
    def missing(self) -> str:
        """What is not installed."""


@click.command(short_help="List the built-in models.")
@click.option("--json", "as_json", is_flag=True, help="Write JSON.")
def zoo(as_json: bool) -> int:
    """List the built-in models, and what is missing for those that cannot be built here.

    Check one with its name: trueport check zoo:hf/bert
    """
    rows: Sequence[ZooRow] = api.list_zoo()
    if as_json:
        fields = [{"name": row.name, "description": row.description, "missing": row.missing} for row in rows]
        print_line(json.dumps(fields, indent=2))
        return 0
    from rich.table import Table
    from rich.text import Text

    from trueport.report.visible import visible

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for title in ("model", "description", "missing here"):
        table.add_column(title)
    for row in rows:
        table.add_row(Text(visible(row.name)), Text(visible(row.description)), Text(visible(row.missing or "-")))
    print_text(table)
    return 0
