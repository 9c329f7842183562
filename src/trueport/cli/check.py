"""`trueport check`: one model through its converters and runtimes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from trueport import api
from trueport.cli import parameters
from trueport.cli.defaults import load_defaults
from trueport.cli.output import print_text, verdict_exit_code, write_json
from trueport.cli.progress import ProgressDisplay
from trueport.core.errors import UsageError
from trueport.core.options import CheckOptions, Tolerance
from trueport.core.result import CheckResult

_DEFAULT = CheckOptions()
# Options of the conversion, which a candidate has behind it.
_CONVERSION = {"converter": "--converter", "opset": "--opset"}
_Value = TypeVar("_Value")


class _CheckCommand(click.Command):
    """A command whose defaults may stand in a pyproject.toml; asking for help does not need that file."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not {"-h", "--help"} & set(args):
            ctx.default_map = load_defaults(Path.cwd(), self)
        return super().parse_args(ctx, args)


def _option(*names: str, **settings: Any) -> Callable[[Callable[..., int]], Callable[..., int]]:
    return click.option(*names, **settings)


_OPTIONS = (
    _option("--candidate", type=parameters.ExistingFile(".onnx"), metavar="FILE.onnx",
            help="Check this ONNX file instead of converting."),
    _option("--map", "name_map", type=parameters.NamePair(), multiple=True, metavar="INPUT=NAME",
            help="Input of the source = its name in the candidate. Repeatable."),
    _option("--converter", type=parameters.NameList("torch-dynamo,torch-script"), multiple=True, metavar="NAME[,NAME]",
            default=_DEFAULT.converters, help=f"Converters.  [default: {','.join(_DEFAULT.converters)}]"),
    _option("--runtime", type=parameters.NameList("onnxruntime,onnx-reference"), multiple=True, metavar="NAME[,NAME]",
            default=_DEFAULT.runtimes, help=f"Runtimes.  [default: {','.join(_DEFAULT.runtimes)}]"),
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


def _with_options(function: Callable[..., int]) -> Callable[..., int]:
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


@click.command(cls=_CheckCommand)
@click.argument("model")
@_with_options
@click.pass_context
def check(ctx: click.Context, /, model: str, **given: Any) -> int:
    """Check that MODEL survives its conversion, and name the stage that broke it.

    MODEL is file.py:NAME (an nn.Module, a class or a callable; NAME is model where left out), model.pt2, or
    zoo:hf/NAME. Defaults can be set in pyproject.toml under [tool.trueport].
    """
    if given["verbose"] and given["quiet"]:
        raise UsageError("expected --verbose or --quiet, got both")
    options = options_from(given)
    _refuse_conversion_options(ctx, options)
    # What a model prints when it is not isolated belongs beside the result, not into it.
    with redirect_stdout(sys.stderr), ProgressDisplay(enabled=not given["quiet"]) as progress:
        result = api.check_path(model, options, on_event=progress.on_event)
    _show(result, given["json_target"], verbose=given["verbose"], quiet=given["quiet"])
    return verdict_exit_code(result, given["fail_on"])


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
        candidate=given["candidate"],
        name_map=name_map,
        converters=_flat(given["converter"]),
        runtimes=_flat(given["runtime"]),
        provider=given["provider"],
        threads=given["threads"],
        opset=given["opset"],
        inputs=given["inputs"],
        input_shapes=_once(given["input_shapes"], "--input-shape"),
        dynamic=tuple(given["dynamic"]),
        samples=given["samples"],
        seed=given["seed"],
        nonfinite=given["nonfinite"],
        timeout_s=_limit(given["timeout"]),
        memory_mb=_limit(given["memory_mb"]),
        isolate=not given["no_isolate"],
        tolerance=tolerance,
        metric=given["metric"],
        data=given["data"],
        save=given["save"],
        trust_pickle=given["trust_pickle"],
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


def _refuse_conversion_options(ctx: click.Context, options: CheckOptions) -> None:
    """A candidate was converted elsewhere; an option that silently does nothing would mislead."""
    if options.candidate is None:
        return
    for name, option in _CONVERSION.items():
        if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise UsageError(f"{option} is for a conversion and does nothing with --candidate; leave one of them out")


def _show(result: CheckResult, json_target: str | None, *, verbose: bool, quiet: bool) -> None:
    if json_target is not None:
        write_json(result.to_json(), json_target)
    if json_target == "-":
        return
    from trueport.report.text import render, render_headlines

    print_text(render_headlines(result) if quiet else render(result, verbose=verbose))
