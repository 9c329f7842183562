"""What a user should know about one conversion, as findings."""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from trueport.adapters.protocols import Converter, Unseen
from trueport.api.observed import cause_record, classes_of, evidence_of
from trueport.api.walk import Walk
from trueport.bisect.judge import Trial
from trueport.bisect.road import Attribution, Step
from trueport.cause import Guess, guess
from trueport.core.options import CheckOptions
from trueport.core.result import Finding, NodeRef
from trueport.core.signature import signature
from trueport.core.taxonomy import Kind, Stage, Symptom, Verdict
from trueport.onnxgraph.interface import read_interface
from trueport.onnxgraph.validate import first_line

if TYPE_CHECKING:
    from trueport.api.conclude import Coverage
    from trueport.api.session import Session


def option_record(options: CheckOptions) -> dict[str, Any]:
    """Returns the options as JSON values."""
    record: dict[str, Any] = msgspec.to_builtins(options)
    return record


def collect(
    session: Session,
    walk: Walk,
    steps: Sequence[Step],
    attribution: Attribution,
    converter: Converter,
    name: str | None,
    coverage: Coverage,
    reasons: Sequence[str],
    hidden: Hidden,
) -> list[Finding]:
    """Returns all findings, those that explain the verdict first."""
    maker = _Maker(session, walk, name, attribution, steps)
    found: list[Finding] = []
    if attribution.step is not None and attribution.verdict in (Verdict.DIVERGENT, Verdict.CRASHED):
        found += _explaining(maker, attribution.step, steps, converter)
    if walk.otherwise is not None:
        found.append(maker.note(*walk.otherwise, stage=attribution.stage))
    found += _set_aside(maker, steps, attribution)
    found += _file(maker, session, walk)
    found += _nonfinite(maker, steps)
    found += _subject(maker, session)
    if hidden.operators:
        found.append(_unobservable(maker, hidden))
    for step in steps:
        if step.judgement.missing:
            operators = ", ".join(step.judgement.missing)
            found.append(
                maker.note(Kind.LANE_MISSING, f"{step.name}: no float64 kernel for {operators}", stage=step.stage)
            )
    if coverage.elements.unstable:
        e = coverage.elements
        total = e.compared + e.unstable + e.not_comparable
        found.append(
            maker.note(Kind.UNSTABLE, f"{e.unstable} of {total} output elements hang on a decision that rounding takes")
        )
    found += [maker.note(Kind.RESOLUTION, reason) for reason in reasons]
    return found


@dataclass(frozen=True)
class Hidden:
    """Operators of the source that no output shows, and those among them that the file was not seen to compute."""

    operators: tuple[Unseen, ...] = ()
    untested: tuple[Unseen, ...] = ()


def hidden_operators(session: Session, walk: Walk) -> Hidden:
    """Returns what no output shows; an operator whose result appears in the file by value counts as tested there."""
    references = session.references
    if walk.file is None or references is None or not session.unseen:
        return Hidden()
    operators = tuple(session.unseen)
    executable: Any = walk.file.executable
    try:
        seen = executable.fingerprints(session.observed[0])
    except Exception:  # noqa: BLE001 - a file that cannot be evaluated shows nothing
        return Hidden(operators, operators)
    return Hidden(operators, tuple(u for u in operators if not any(u.fingerprint.matches(f) for f in seen)))


def _unobservable(maker: _Maker, hidden: Hidden) -> Finding:
    nodes = tuple(NodeRef("", u.operator, "", u.source) for u in hidden.operators[:20])
    count, tested = len(hidden.operators), len(hidden.operators) - len(hidden.untested)
    message = (
        f"a relative error of 1e-3 in {count} operators of the source would show in no output; {tested} of them were "
        "found in the file by value"
    )
    evidence = {"operators": count, "found_by_value": tested, "listed": len(nodes)}
    return maker.make(Kind.UNOBSERVABLE, message, material=False, nodes=nodes, evidence=evidence)


class _Maker:
    """Makes findings that share the check's converter and signature fields."""

    def __init__(
        self, session: Session, walk: Walk, converter: str | None, attribution: Attribution, steps: Sequence[Step]
    ) -> None:
        self.session = session
        self.walk = walk
        self.steps = steps
        self.converter = converter
        self.attribution = attribution
        self.dtypes = tuple(dict.fromkeys(spec.example.dtype.name for spec in session.specs))

    def make(
        self,
        kind: Kind,
        message: str,
        *,
        material: bool,
        symptom: Symptom | None = None,
        stage: Stage | None = None,
        cause: Guess | None = None,
        nodes: tuple[NodeRef, ...] = (),
        inputs: str = "",
        exception: str = "",
        evidence: dict[str, Any] | None = None,
    ) -> Finding:
        """Returns a finding with its signature."""
        operators = [n.op_type for n in nodes if n.op_type]
        identity = signature(
            stage=stage, symptom=symptom, kind=kind, converter=self.converter, exception=exception,
            operators=operators, dtypes=self.dtypes,
        )  # fmt: skip
        details = dict(evidence or {})
        if cause is not None:
            details |= cause_record(cause)
        return Finding(
            identity, kind, material, symptom, stage, cause.cause if cause else None, message, nodes, inputs, details
        )

    def note(self, kind: Kind, message: str, *, stage: Stage | None = None, material: bool = False) -> Finding:
        """Returns a finding that explains no verdict."""
        return self.make(kind, message, material=material, stage=stage)


# ---------------------------------------------------------------------- what explains the verdict


def _explaining(maker: _Maker, step: Step, steps: Sequence[Step], converter: Converter) -> list[Finding]:
    if step.error is not None:
        return [_raised(maker, step, step.error, converter)]
    refused = step.facts.get("refused")
    if isinstance(refused, BaseException):
        return [_failed(maker, step, refused, "")]
    if step.stage is Stage.VALIDATION:
        return [_rejected(maker, step, steps)]
    failures = step.judgement.failures
    found = []
    crash = next((t for t in failures if t.error is not None), None)
    if crash is not None and crash.error is not None:
        found.append(_failed(maker, step, crash.error, crash.inputs.label))
    by_kind: dict[Kind, Trial] = {}
    for trial in failures:
        worst = trial.worst
        if worst is None or worst[1].kind is None:
            continue
        # The first input set that shows it is the easiest to repeat; one that rounding hides is the last resort.
        held = by_kind.get(worst[1].kind)
        if held is None or (trial.material and not held.material):
            by_kind[worst[1].kind] = trial
    found += [_differs(maker, step, trial, failures) for trial in by_kind.values()]
    return sorted(found, key=lambda finding: not finding.material)


def _guess(maker: _Maker, step: Step, kind: Kind, error: BaseException | None, **known: Any) -> Guess:
    return guess(evidence_of(maker.session, maker.walk, maker.steps, step, maker.attribution, kind, error, **known))


def _raised(maker: _Maker, step: Step, error: BaseException, converter: Converter) -> Finding:
    nodes = converter.blame(error)
    root = error
    while root.__cause__ is not None:
        root = root.__cause__
    place = f" at {nodes[0].op_type or 'the model'} ({nodes[0].source})" if nodes and nodes[0].source else ""
    message = f"{step.stage} raised {type(root).__name__}{place}: {first_line(root)}"
    cause = _guess(maker, step, Kind.EXCEPTION, error, operators=[n.op_type for n in nodes])
    return maker.make(
        Kind.EXCEPTION, message, material=True, symptom=Symptom.CRASH, stage=maker.attribution.stage,
        cause=cause, nodes=nodes, inputs="example",
        exception=f"{type(root).__module__}.{type(root).__qualname__}",
        evidence={"exception": classes_of(error), "traceback": _tail(error)},
    )  # fmt: skip


def _tail(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))[-4000:]


def _failed(maker: _Maker, step: Step, error: BaseException, inputs: str) -> Finding:
    """A checkpoint that raised on an input set, or a runtime that refused the file."""
    operator = step.facts.get("no_kernel")
    kernel = operator is not None
    where = f" on input '{inputs}'" if inputs else " when it loads the file"
    message = f"{step.name} raised {type(error).__name__}{where}: {first_line(error)}"
    kind = Kind.NO_KERNEL if kernel else Kind.EXCEPTION
    return maker.make(
        kind, message, material=True, symptom=Symptom.CRASH, stage=maker.attribution.stage,
        cause=_guess(maker, step, kind, error), inputs=inputs,
        exception=f"{type(error).__module__}.{type(error).__qualname__}", evidence={"exception": classes_of(error)},
        nodes=(NodeRef("", operator),) if operator else (),
    )  # fmt: skip


def _rejected(maker: _Maker, step: Step, steps: Sequence[Step]) -> Finding:
    refused = next((s.facts.get("refused") for s in steps if s.stage is Stage.RUNTIME), None)
    runtime = f"; the runtime refuses it: {first_line(refused)}" if isinstance(refused, BaseException) else ""
    message = f"the file is invalid: {'; '.join(step.complaints)}{runtime}"
    return maker.make(
        Kind.VALIDATION, message, material=True, symptom=Symptom.CRASH, stage=Stage.VALIDATION,
        cause=_guess(maker, step, Kind.VALIDATION, None),
    )  # fmt: skip


def _differs(maker: _Maker, step: Step, trial: Trial, failures: Sequence[Trial]) -> Finding:
    worst = trial.worst
    assert worst is not None
    index, comparison = worst
    assert comparison.kind is not None
    references = maker.session.references
    assert references is not None
    outputs = references.screens[references.inputs.index(trial.inputs)].outputs
    name = outputs[index].name if index < len(outputs) else "?"
    kind = comparison.kind
    material = trial.material and any(t.material for t in failures)
    if kind in (Kind.VALUE, Kind.NONFINITE):
        total = comparison.compared
        message = (
            f"output '{name}'{list(comparison.index)}: expected {comparison.reference}, got {comparison.candidate}"
            f" ({comparison.wrong} of {total} elements differ) on input '{trial.inputs.label}'"
        )
    else:
        message = f"{comparison.detail} on input '{trial.inputs.label}'"
    if trial.swapped:
        kind = Kind.OUTPUT_ORDER
        message = f"outputs {', '.join(trial.swapped)} come in another order on input '{trial.inputs.label}'"
    evidence = {
        "score": min(comparison.score, 1e300), "floor": comparison.floor, "reference": comparison.reference,
        "candidate": comparison.candidate, "index": list(comparison.index), "wrong_elements": comparison.wrong,
        "compared_elements": comparison.compared, "inputs_that_fail": [t.inputs.label for t in failures],
    }  # fmt: skip
    return maker.make(
        kind, message, material=material, symptom=Symptom.WRONG_MODEL, stage=maker.attribution.stage,
        cause=_guess(maker, step, kind, None), inputs=trial.inputs.label, evidence=evidence,
    )  # fmt: skip


# ---------------------------------------------------------------------- what leaves the verdict alone


def _set_aside(maker: _Maker, steps: Sequence[Step], attribution: Attribution) -> list[Finding]:
    """Checkpoints that are bad although the verdict rests on something else."""
    found = []
    for step in steps:
        if step is attribution.step or step.error is not None:
            continue
        if step.complaints:
            found.append(maker.note(Kind.VALIDATION, "; ".join(step.complaints), stage=Stage.VALIDATION))
        elif step.bad and attribution.verdict in (Verdict.FAITHFUL, Verdict.INCONCLUSIVE):
            trial = step.judgement.failures[0] if step.judgement.failures else None
            what = _brief(trial) if trial is not None else "failed"
            found.append(
                maker.note(Kind.VALUE, f"{step.name} {what}, although what follows is right", stage=step.stage)
            )
    return found


def _brief(trial: Trial) -> str:
    if trial.error is not None:
        return f"raised {type(trial.error).__name__} on input '{trial.inputs.label}' ({first_line(trial.error)})"
    worst = trial.worst
    detail = worst[1].detail if worst is not None else ""
    return f"differs on input '{trial.inputs.label}'" + (f" ({detail})" if detail else "")


def _nonfinite(maker: _Maker, steps: Sequence[Step]) -> list[Finding]:
    """Differences that only non-finite inputs show."""
    for step in reversed(steps):
        for trial in step.judgement.trials:
            if trial.bad and not trial.counts:
                message = f"{step.name} {_brief(trial)}; --nonfinite makes this count"
                return [
                    maker.make(Kind.NONFINITE, message, material=False, stage=step.stage, inputs=trial.inputs.label)
                ]
    return []


def _file(maker: _Maker, session: Session, walk: Walk) -> list[Finding]:
    """What the file's interface says: axes, inputs, opset."""
    if walk.file is None:
        return []
    interface = read_interface(walk.file.model)
    executable: Any = walk.file.executable
    pairs: dict[str, int | None] = executable.pairs
    found = []
    by_leaf = {session.names[i]: value for value in interface.inputs if (i := pairs.get(value.name)) is not None}
    for axis in session.axes:
        value = by_leaf.get(axis.input)
        if value is None or value.dims is None or axis.axis >= len(value.dims):
            continue
        if isinstance(value.dims[axis.axis], int):
            message = (
                f"axis {axis.axis} of input '{axis.input}' was asked to be dynamic ('{axis.symbol}') and is fixed at "
                f"{value.dims[axis.axis]} in the file"
            )
            found.append(maker.note(Kind.DYNAMIC_AXIS, message, stage=Stage.LOAD_MODEL, material=True))
    for name in session.names:
        if name not in by_leaf:
            found.append(
                maker.note(
                    Kind.INPUT_MISSING, f"input '{name}' of the source is no input of the file", stage=Stage.EXPORT
                )
            )
    wanted = session.options.opset or session.subject.export_options.get("opset_version")
    if wanted is not None and interface.opset != wanted:
        message = f"opset {wanted} was asked for, the file has opset {interface.opset}"
        found.append(maker.note(Kind.OPSET, message, stage=Stage.EXPORT, material=True))
    return found


def _subject(maker: _Maker, session: Session) -> list[Finding]:
    references = session.references
    assert references is not None
    found = []
    if not references.deterministic:
        found.append(maker.note(Kind.NONDETERMINISTIC, "two runs of the source give different values"))
    found += [maker.note(kind, message) for kind, message in session.source.notes()]
    if session.left_out:
        source = session.source
        size = f"has {source.weights / 1e6:.0f} million weights"
        if source.computed > source.weights:
            size = f"computes {source.computed / 1e6:.0f} million numbers in a run"
        message = (
            f"the model {size}, so {session.left_out} of the usual input sets were left "
            "out; --samples with another number than the default tries them all"
        )
        found.append(maker.note(Kind.FEWER_INPUTS, message))
    return found
