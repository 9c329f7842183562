"""The options that `check` and `compare` share, and what becomes of their values."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click

from trueport.cli import parameters
from trueport.cli.defaults import load_defaults
from trueport.cli.output import print_text, write_json
from trueport.core.errors import UsageError
from trueport.core.options import CheckOptions, Tolerance
from trueport.core.result import CheckResult

_DEFAULT = CheckOptions()
_Value = TypeVar("_Value")
_Command = TypeVar("_Command", bound=Callable[..., int])


class ConfiguredCommand(click.Command):
    """A command whose defaults may stand in a pyproject.toml; asking for help does not need that file."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Reads the defaults first; those that this command does not take are left to those that do."""
        if not {"-h", "--help"} & set(args):
            ctx.default_map = load_defaults(Path.cwd(), self, known=OPTION_NAMES)
        return super().parse_args(ctx, args)


def _option(*names: str, **settings: Any) -> tuple[str, Callable[[_Command], _Command]]:
    long = next(name for name in names if name.startswith("--"))
    return long.removeprefix("--"), click.option(*names, **settings)


OPTIONS = (
    _option("--candidate", type=parameters.ExistingFile(".onnx"), metavar="FILE.onnx",
            help="Check this ONNX file instead of converting."),
    _option("--map", "name_map", type=parameters.NamePair(), multiple=True, metavar="INPUT=NAME",
            help="Input of the source = its name in the candidate. Repeatable."),
    _option("--converter", type=parameters.Converters("torch-dynamo,torch-script"), multiple=True,
            metavar="NAME[,NAME]", default=_DEFAULT.converters,
            help="Converters, or your own command as 'cmd:tool {in} {out}'.  [default: torch-dynamo for PyTorch, "
            "tf2onnx for TensorFlow and Keras, none for ONNX]"),
    _option("--runtime", type=parameters.NameList("onnxruntime,onnx-reference"), multiple=True, metavar="NAME[,NAME]",
            default=_DEFAULT.runtimes,
            help=f"Runtimes; three or more are put to a vote.  [default: {','.join(_DEFAULT.runtimes)}]"),
    _option("--provider", metavar="NAME", help="Execution provider of the runtime.  [default: CPU]"),
    _option("--threads", type=click.IntRange(min=1), metavar="N", default=_DEFAULT.threads, show_default=True,
            help="Threads of the source and the runtimes."),
    _option("--opset", type=click.IntRange(min=1), metavar="N",
            help="ONNX operator set to convert to.  [default: the converter's]"),
    _option("--inputs", type=parameters.Inputs(), metavar="FILE", help="Example inputs: file.npz or file.py:NAME."),
    _option("--input-shape", "input_shapes", type=parameters.Shape(), multiple=True, metavar="NAME:[1,3,224,224]",
            help="Draw this input in this shape. Repeatable."),
    _option("--dynamic", type=parameters.Dynamic(), multiple=True, metavar="NAME:AXIS=SYMBOL[:MIN-MAX]",
            help="Convert with this axis dynamic, and try several sizes. Repeatable."),
    _option("--samples", type=click.IntRange(min=1), metavar="N", default=_DEFAULT.samples, show_default=True,
            help="Redrawn input sets besides the example."),
    _option("--seed", type=click.IntRange(min=0), metavar="N", default=_DEFAULT.seed, show_default=True,
            help="Seed of every draw."),
    _option("--nonfinite", is_flag=True, help="Let NaN and infinity in inputs change the verdict."),
    _option("--no-locate", is_flag=True, help="Do not look for the operator or pass after a failed check."),
    _option("--timeout", type=parameters.Limit("seconds", whole=False), metavar="S", default=_DEFAULT.timeout_s,
            help=f"Time limit of a check, or none.  [default: {_DEFAULT.timeout_s:g}]"),
    _option("--memory-mb", type=parameters.Limit("megabytes", whole=True), metavar="N", default=_DEFAULT.memory_mb,
            show_default=True, help="Memory limit of a check, or none."),
    _option("--no-isolate", is_flag=True, help="Run in this process; a crash then ends trueport."),
    _option("--tolerance", type=parameters.ToleranceParameter(), metavar="RULE", default="measured", show_default=True,
            help="measured, or rtol=..,atol=.. to compare with other tools."),
    _option("--metric", type=parameters.ObjectInFile(), metavar="FILE.py:NAME",
            help="Your own task metric, computed on both sides; needs --data."),
    _option("--data", type=parameters.ExistingFile(), metavar="FILE", help="The data for --metric."),
    _option("--fail-on", type=parameters.FailOn(), metavar="VERDICT[,VERDICT]", show_default=True,
            default=",".join(parameters.FAIL_ON[:3]),
            help="Verdicts that make the exit code other than 0; with material, divergent counts only if it shows "
            "outside what rounding hides."),
    _option("--json", "json_target", type=parameters.JsonTarget(), metavar="FILE|-",
            help="Write the result as JSON; - writes it to standard output instead of the text."),
    _option("--save", type=parameters.Folder(), metavar="DIR", help="Save the ONNX model as an ONNX test case."),
    _option("--trust-pickle", is_flag=True, help="Allow MODEL to be a pickle, which can run any code."),
    _option("-v", "--verbose", is_flag=True, help="Show all findings with their evidence."),
    _option("-q", "--quiet", is_flag=True, help="Show one line per check and no progress."),
)  # fmt: skip


OPTION_NAMES = frozenset(name for name, _ in OPTIONS)
"""What a pyproject.toml may set."""


def with_options(*, without: Container[str] = ()) -> Callable[[_Command], _Command]:
    """Returns a decorator that gives a command these options, in the order of the table."""

    def decorate(function: _Command) -> _Command:
        for name, option in reversed(OPTIONS):
            if name not in without:
                function = option(function)
        return function

    return decorate


def options_from(given: Mapping[str, Any]) -> CheckOptions:
    """Returns the options for the parsed parameters of the command line.

    Raises:
        UsageError: an input is named twice, or options contradict each other.
    """
    tolerance = given["tolerance"]
    assert isinstance(tolerance, Tolerance)
    name_map = _once(given["name_map"], "--map")
    if len(set(name_map.values())) < len(name_map):
        raise UsageError("expected --map to name each input of the candidate once")
    return CheckOptions(
        candidate=given.get("candidate"),
        name_map=name_map,
        converters=_flat(given.get("converter", ())),
        runtimes=_flat(given["runtime"]),
        provider=given["provider"],
        threads=given["threads"],
        opset=given.get("opset"),
        inputs=given["inputs"],
        input_shapes=_once(given["input_shapes"], "--input-shape"),
        dynamic=tuple(given["dynamic"]),
        samples=given["samples"],
        seed=given["seed"],
        nonfinite=given["nonfinite"],
        locate=not given.get("no_locate", False),
        timeout_s=_limit(given["timeout"]),
        memory_mb=_limit(given["memory_mb"]),
        isolate=not given["no_isolate"],
        tolerance=tolerance,
        metric=given.get("metric"),
        data=given.get("data"),
        save=given.get("save"),
        trust_pickle=given.get("trust_pickle", False),
    )


def _flat(lists: Iterable[str | tuple[str, ...]]) -> tuple[str, ...]:
    names = [name for names in lists for name in ([names] if isinstance(names, str) else names)]
    return tuple(dict.fromkeys(names))


def _once(pairs: Iterable[tuple[str, _Value]], option: str) -> dict[str, _Value]:
    found: dict[str, _Value] = {}
    for name, value in pairs:
        if name in found:
            raise UsageError(f"expected {option} once for each input, got '{name}' twice")
        found[name] = value
    return found


def _limit(value: Any) -> Any:
    return None if value == parameters.NO_LIMIT else value


def show(result: CheckResult, json_target: str | None, *, verbose: bool, quiet: bool) -> None:
    """Writes the result where it was asked for: as JSON, as text, or as both."""
    if json_target is not None:
        write_json(result.to_json(), json_target)
    if json_target == "-":
        return
    from trueport.report.text import render, render_headlines

    print_text(render_headlines(result) if quiet else render(result, verbose=verbose))
