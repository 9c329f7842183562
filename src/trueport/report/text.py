"""The result of a check for a terminal: verdict first, then why, where, and what could not have been seen.

Everything is a `Text` made from a plain string, so no markup of rich is ever read from a model's strings, and every
such string goes through `visible`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from trueport.core.result import Check, CheckResult, Finding, NodeRef, StageRecord, SubjectInfo
from trueport.core.taxonomy import Lane, Status, Verdict
from trueport.report.pages import troubleshooting_page
from trueport.report.visible import visible

MAX_ALIKE = 3
"""So many checkpoints of one stage with one outcome are shown; of more the first and the last."""
MAX_FINDINGS = 10
MAX_NODES = 5
# Scores beyond this stand for infinity, which JSON does not have.
_UNBOUNDED = 1e300
_VERDICT_STYLE = {
    Verdict.FAITHFUL: "bold green",
    Verdict.DIVERGENT: "bold red",
    Verdict.CRASHED: "bold magenta",
    Verdict.INCONCLUSIVE: "bold yellow",
}
_STATUS_STYLE = {Status.OK: "green", Status.DIVERGED: "red", Status.CRASHED: "magenta", Status.NOT_RUN: "dim"}


def render(result: CheckResult, *, verbose: bool = False) -> RenderableType:
    """Returns the whole result, one block per check.

    Print it with `crop=False`: the line with the command that repeats a check is never broken.

    Args:
        result: the result.
        verbose: show every finding and node, evidence, options and memory.
    """
    parts: list[RenderableType] = [_subject(result.subject)]
    for check in result.checks:
        parts += ["", *_check(check, verbose=verbose)]
    if not result.checks:
        parts += ["", Text("nothing was checked", style=_VERDICT_STYLE[Verdict.INCONCLUSIVE])]
    return Group(*parts)


def render_headlines(result: CheckResult) -> RenderableType:
    """Returns one line per check."""
    return Group(*(_headline(check) for check in result.checks))


def _subject(subject: SubjectInfo) -> Text:
    inputs = ", ".join(f"{visible(i.name)}: {visible(i.dtype)}[{', '.join(map(str, i.shape))}]" for i in subject.inputs)
    text = Text.assemble((visible(subject.name), "bold"), f"  {visible(subject.framework)}")
    if inputs:
        text.append(f"  ({inputs})")
    if subject.deterministic is False:
        text.append("  nondeterministic", style="yellow")
    return text


def render_places(result: CheckResult) -> RenderableType:
    """Returns the headline of each check, and below it where the failure is introduced."""
    parts: list[RenderableType] = []
    for check in result.checks:
        parts.append(_headline(check))
        located = [f for f in check.findings if f.stage is check.stage and (f.nodes or "located" in f.evidence)]
        for number, finding in enumerate(located, start=1):
            parts += (Padding(part, (0, 0, 0, 2)) for part in _finding(number, finding, verbose=True))
        if check.stage is not None and not located:
            parts.append(Text("  not located: the failure could not be tied to a node, pass or kernel", style="dim"))
        parts.append(Text(f"  repeat      {visible(check.repeat)}", no_wrap=True, overflow="ignore"))
    return Group(*parts)


def _headline(check: Check) -> Text:
    text = Text(check.verdict, style=_VERDICT_STYLE[check.verdict])
    text.append(f"  {visible(check.road)} -> {visible(check.runtime)}", style="default")
    where = [label for label in (check.stage, check.symptom) if label is not None]
    if where:
        text.append(f"  [{', '.join(where)}]", style="default")
    return text


def _check(check: Check, *, verbose: bool) -> Iterator[RenderableType]:
    yield _headline(check)
    if check.explanation:
        yield Padding(Text(visible(check.explanation, lines=True)), (1, 0, 0, 2))
    if check.stages:
        yield Padding(_strip(check.stages, verbose=verbose), (1, 0, 0, 2))
    if check.findings:
        yield Padding(_findings(check.findings, verbose=verbose), (1, 0, 0, 2))
    yield Padding(_facts(check, verbose=verbose), (1, 0, 0, 2))
    # No padding around this one: it would be cut, and a command that is cut cannot be copied.
    yield Text(f"  repeat      {visible(check.repeat)}", no_wrap=True, overflow="ignore")


def _strip(stages: Sequence[StageRecord], *, verbose: bool) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    for title in ("stage", "checkpoint", "status", "lane"):
        table.add_column(title)
    for title in ("score", "time"):
        table.add_column(title, justify="right")
    for record, alike in _folded(stages, verbose=verbose):
        table.add_row(
            Text(record.stage),
            Text(visible(record.checkpoint)),
            Text(record.status, style=_STATUS_STYLE[record.status]),
            Text(record.lane if record.lane is not Lane.NONE else "-"),
            Text(_number(record.score)),
            Text(_seconds(record.elapsed_s) if record.status is not Status.NOT_RUN else "-"),
        )
        if alike:
            table.add_row(Text(""), Text(f"({alike} more, the same)", style="dim"))
    return table


def _folded(stages: Sequence[StageRecord], *, verbose: bool) -> Iterator[tuple[StageRecord, int]]:
    """Yields the checkpoints; of many passes with one outcome the first and the last, and how many lie between."""
    for _, group in itertools.groupby(stages, lambda s: (s.stage, s.status, s.lane, s.score)):
        records = list(group)
        if verbose or len(records) <= MAX_ALIKE:
            yield from ((record, 0) for record in records)
        else:
            yield records[0], len(records) - 2
            yield records[-1], 0


def _findings(findings: Sequence[Finding], *, verbose: bool) -> Group:
    shown = findings if verbose else findings[:MAX_FINDINGS]
    parts: list[RenderableType] = [Text(f"findings ({len(findings)})", style="bold")]
    for number, finding in enumerate(shown, start=1):
        parts += _finding(number, finding, verbose=verbose)
    if len(shown) < len(findings):
        parts.append(_left_out(len(findings) - len(shown), "findings"))
    return Group(*parts)


def _finding(number: int, finding: Finding, *, verbose: bool) -> Iterator[RenderableType]:
    title = Text(f"{number}. {finding.kind}, ")
    title.append(*(("material", "red") if finding.material else ("not material", "dim")))
    if finding.stage is not None:
        title.append(f", {finding.stage}")
    if finding.cause is not None:
        title.append(f", cause{_guessed(finding)}: {finding.cause}")
    yield title
    yield _indented(Text(visible(finding.message, lines=True)))
    nodes = finding.nodes if verbose else finding.nodes[:MAX_NODES]
    for node in nodes:
        yield _indented(_node(node))
    if len(nodes) < len(finding.nodes):
        yield _indented(_left_out(len(finding.nodes) - len(nodes), "nodes"))
    if finding.input:
        yield _indented(Text(f"input: {visible(finding.input)}"))
    for key in ("advice", "known"):
        if key in finding.evidence:
            yield _indented(Text(f"{key}: {visible(str(finding.evidence[key]), lines=True)}"))
    page = troubleshooting_page(finding)
    if page:
        yield _indented(Text(f"see: {page}", no_wrap=True, overflow="ignore"))
    if verbose:
        for key, value in sorted(finding.evidence.items()):
            if key in ("advice", "known"):
                continue
            yield _indented(Text(f"{visible(key)}: {visible(_evidence(value), lines=True)}", style="dim"))


def _guessed(finding: Finding) -> str:
    """How sure the cause is; results of earlier versions do not say it and hold guesses."""
    held = finding.evidence.get("cause")
    sure = isinstance(held, dict) and held.get("confidence") in ("high", "medium")
    return "" if sure else " (a guess)"


def _node(node: NodeRef) -> Text:
    text = Text(f"{node.role}: {visible(node.op_type)} {visible(node.name)}")
    if node.module:
        text.append(f" in {visible(node.module)}")
    if node.source:
        text.append(f"  {visible(node.source)}", style="cyan")
    if node.score is not None:
        text.append(f"  score {_number(node.score)}")
    return text


def _facts(check: Check, *, verbose: bool) -> Table:
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="dim", no_wrap=True, min_width=10)
    grid.add_column()
    for name, value in _fact_rows(check, verbose=verbose):
        grid.add_row(Text(name), Text(value))
    return grid


def _fact_rows(check: Check, *, verbose: bool) -> Iterator[tuple[str, str]]:
    score = "none" if check.score is None else _number(check.score)
    yield "score", f"{score}; from {_number(check.floor.threshold)} on a difference counts"
    if check.resolution is None:
        yield "resolution", "not established: nothing can be said about errors that would not have been seen"
    elif check.resolution == 0:
        yield "resolution", "any difference in the compared elements would have been seen"
    else:
        yield "resolution", f"relative errors below {_number(check.resolution)} would not have been seen"
    counted = check.elements
    compared = f"{counted.compared:,} compared" if counted.compared else "none compared"
    yield (
        "elements",
        f"{compared}, {counted.unstable:,} unstable, {counted.not_comparable:,} not comparable; "
        f"{check.inputs_tried:,} input sets",
    )
    if verbose:
        yield "floor", f"{visible(check.floor.method)}, k = {check.floor.k}"
        yield "cost", f"{_seconds(check.elapsed_s)}, {_memory(check.peak_memory_mb)}"
        yield "options", ", ".join(f"{visible(k)}={visible(_evidence(v))}" for k, v in sorted(check.options.items()))
    yield "versions", ", ".join(f"{visible(k)} {visible(v)}" for k, v in sorted(check.versions.items())) or "unknown"
    if "--seed" not in check.repeat:
        yield "seed", str(check.seed)


def _indented(renderable: RenderableType) -> Padding:
    return Padding(renderable, (0, 0, 0, 3))


def _left_out(count: int, things: str) -> Text:
    return Text(f"{count:,} more {things} left out; -v shows them", style="dim")


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    if value >= _UNBOUNDED:
        return "unbounded"
    return f"{value:.3g}"


def _seconds(value: float) -> str:
    return f"{value:.1f} s" if value >= 1 else f"{value * 1000:.0f} ms"


def _memory(value: float | None) -> str:
    return "memory not measured" if value is None else f"{value:,.0f} MiB at most"


def _evidence(value: Any) -> str:
    return value if isinstance(value, str) else repr(value)
