"""What is known of a check whose worker did not live to tell: the stage that was running is the stage that failed."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec

from trueport.core.options import CheckOptions
from trueport.core.result import Check, Elements, Finding, Floor, StageRecord
from trueport.core.signature import signature
from trueport.core.taxonomy import Kind, Lane, Stage, Status, Symptom, Verdict
from trueport.core.versions import base_versions
from trueport.isolation import Ending, Outcome

_KINDS = {Ending.TIMEOUT: Kind.TIMEOUT, Ending.MEMORY: Kind.MEMORY, Ending.SIGNAL: Kind.SIGNAL}


def lost_check(outcome: Outcome, options: CheckOptions, origin: str) -> Check:
    """Returns the check that was running when the worker was lost.

    A process that died while trueport itself was judging says nothing about the converter: `inconclusive`. One that
    died in the search for the place of a failure had come to its verdict.

    Args:
        outcome: how the worker ended, with its events.
        options: the user's.
        origin: the model as the user named it.
    """
    events = _since_last_check(outcome.events)
    concluded = next((e for e in reversed(events) if e.get("event") == "locating"), None)
    if concluded is not None:
        check = msgspec.convert(concluded["check"], Check)
        return with_note(check, f"the process {_ending(outcome)} while trueport searched for the place")
    begun: Mapping[str, Any] = next((e for e in reversed(events) if e.get("event") == "check-begins"), {})
    converter, runtime = begun.get("converter"), begun.get("runtime") or options.runtimes[0]
    last = next((e for e in reversed(events) if e.get("event") in ("stage", "judging")), None)
    ours = last is None or last["event"] == "judging"
    stage = Stage(last["stage"]) if last is not None else None
    symptom = Symptom.HANG if outcome.kind is Ending.TIMEOUT else Symptom.CRASH
    verdict = Verdict.INCONCLUSIVE if ours else Verdict.CRASHED
    kind = _KINDS.get(outcome.kind, Kind.EXCEPTION)
    what = _ending(outcome)
    message = f"the process {what} while trueport judged {stage}" if ours else f"the process {what} in stage {stage}"
    finding = Finding(
        signature(stage=stage, symptom=symptom, kind=kind, converter=converter, exception=outcome.signal),
        kind, not ours, symptom, stage, None, message, evidence={
            "ending": outcome.kind, "signal": outcome.signal, "exit_code": outcome.exit_code,
            "output": outcome.output_tail[-2000:], "stack": outcome.traceback[-4000:],
        },
    )  # fmt: skip
    return Check(
        converter=converter, runtime=runtime, options=_plain(options), verdict=verdict,
        symptom=None if ours else symptom, stage=None if ours else stage, cause=None, score=None,
        floor=Floor("none: the worker was lost", 0, 0.0), resolution=None, inputs_tried=0, elements=Elements(),
        stages=_records(events, last), findings=(finding,), explanation=f"{message[:1].upper()}{message[1:]}. "
        "Nothing that it had computed could be compared.",
        elapsed_s=outcome.elapsed_s, peak_memory_mb=outcome.peak_memory_mb, versions=base_versions(),
        seed=options.seed, repeat=_repeat(options, origin, converter, runtime),
    )  # fmt: skip


def with_note(check: Check, message: str) -> Check:
    """Returns a check with a finding that says why its failure was not located."""
    identity = signature(stage=check.stage, symptom=None, kind=Kind.NOT_LOCATED, converter=check.converter)
    note = Finding(identity, Kind.NOT_LOCATED, False, None, check.stage, None, message)
    return replace(check, findings=(*check.findings, note))


def _since_last_check(events: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
    done = [i for i, e in enumerate(events) if e.get("event") == "check"]
    return events[done[-1] + 1 :] if done else events


def _ending(outcome: Outcome) -> str:
    return {
        Ending.TIMEOUT: f"did not finish within {outcome.elapsed_s:.0f} s",
        Ending.MEMORY: "exceeded the memory limit",
        Ending.SIGNAL: f"was ended by {outcome.signal}",
        Ending.EXITED: f"left with exit code {outcome.exit_code}",
    }.get(outcome.kind, f"ended: {outcome.kind}")


def _records(events: Sequence[Mapping[str, Any]], last: Mapping[str, Any] | None) -> tuple[StageRecord, ...]:
    """The checkpoints that were passed, and the one that was running."""
    passed = [
        StageRecord(Stage(e["stage"]), e["checkpoint"], Status(e["status"])) for e in events if e["event"] == "record"
    ]
    if last is not None:
        status = Status.NOT_RUN if last["event"] == "judging" else Status.CRASHED
        passed.append(StageRecord(Stage(last["stage"]), last["checkpoint"], status, Lane.NONE))
    return tuple(passed)


def _repeat(options: CheckOptions, origin: str, converter: str | None, runtime: str) -> str:
    chosen = replace(options, runtimes=(runtime,), save=None)
    if converter is not None:
        chosen = replace(chosen, converters=(converter,))
    return shlex.join(["trueport", "check", origin, *chosen.to_arguments()])


def _plain(options: CheckOptions) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.to_builtins(options)
    return plain
