"""A group whose commands are imported when they are called, and what becomes of errors."""

from __future__ import annotations

import importlib
import io
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from typing import Any

import click

from trueport._version import __version__
from trueport.core.errors import MissingToolError, StoreError, TrueportError, UsageError


class ExitCode(IntEnum):
    """Exit codes beside those of a result. A bug of trueport must look like neither a verdict nor a usage error."""

    USAGE = 2
    UNDECIDED = 3
    INTERNAL = 70
    INTERRUPTED = 130


class LazyGroup(click.Group):
    """A click group that knows where its commands are and what they do without importing them.

    Args:
        lazy: name -> ("module:attribute", one-line help).
        options: as `click.Group`.
    """

    def __init__(self, *, lazy: Mapping[str, tuple[str, str]], **options: Any) -> None:
        super().__init__(context_settings={"help_option_names": ["-h", "--help"]}, no_args_is_help=False, **options)
        self.lazy = dict(lazy)
        self.params.append(
            click.Option(
                ["--version"],
                is_flag=True,
                is_eager=True,
                expose_value=False,
                callback=_show_version,
                help="Show the version.",
            )
        )

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Shows the help where nothing was asked for; that is no success, so a script notices a lost argument."""
        if not args:
            click.echo(ctx.get_help(), err=True)
            ctx.exit(ExitCode.USAGE)
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Returns the names of all commands."""
        return list(self.lazy)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - the same
        """Imports a command; None for a name that there is not."""
        if cmd_name not in self.lazy:
            return None
        module, _, attribute = self.lazy[cmd_name][0].partition(":")
        command = getattr(importlib.import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Adds to the error what the commands are: somebody may have left out `check`."""
        name = args[0]
        if name not in self.lazy and not name.startswith("-"):
            commands = " or ".join(f"'{command}'" for command in self.lazy)
            raise click.UsageError(f"expected a command ({commands}), got '{name}'", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - the same
        """Writes the list of commands from their known help lines."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in self.lazy.items()])

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        """Runs as `click.Group.main`, with our own exit codes and one-line errors."""
        code = self._guarded(lambda: super(LazyGroup, self).main(args, prog_name, complete_var, False, **extra))
        if standalone_mode:
            sys.exit(code)
        return code

    def _guarded(self, run: Callable[[], Any]) -> int:
        for stream in (sys.stdout, sys.stderr):
            # A name that the terminal's encoding does not have must not end a check.
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="backslashreplace")
        try:
            return int(run() or 0)
        except click.ClickException as error:
            return _fail(_described(error), ExitCode.USAGE)
        except (UsageError, MissingToolError, StoreError) as error:
            return _fail(str(error), ExitCode.USAGE)
        except TrueportError as error:
            return _fail(str(error), ExitCode.UNDECIDED)
        except click.Abort:
            return _fail("interrupted", ExitCode.INTERRUPTED)
        except SystemExit as error:
            # Only code of a model that was not isolated gets here, and its exit code must not pass for a verdict.
            message = f"what was checked called sys.exit({error.code!r}); run it isolated to get a result"
            return _fail(message, ExitCode.UNDECIDED)
        except Exception:  # noqa: BLE001 - the last resort of the program: shown in full, with a code of its own
            traceback.print_exc()
            return _fail("this is a bug of trueport; please report it with the lines above", ExitCode.INTERNAL)


def _described(error: click.ClickException) -> str:
    message = error.format_message()
    if isinstance(error, click.UsageError) and error.ctx is not None and not _names_its_parameter(error):
        message = f"{message.rstrip('.')}; see '{error.ctx.command_path} --help'"
    return message


def _names_its_parameter(error: click.UsageError) -> bool:
    return isinstance(error, click.BadParameter) and not isinstance(error, click.MissingParameter)


def _fail(message: str, code: ExitCode) -> int:
    from trueport.report.visible import visible

    click.echo(f"trueport: error: {visible(' '.join(message.split()))}", err=True)
    return int(code)


def _show_version(ctx: click.Context, param: click.Parameter, value: bool) -> None:  # noqa: ARG001 - click's signature
    if value and not ctx.resilient_parsing:
        click.echo(f"trueport {__version__}")
        ctx.exit()
