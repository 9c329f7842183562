"""Rules from evidence to the study's causes, the surest first.

Evidence is what was observed: classes of exceptions, which input sets fail, what kind of thing differs. Where it is
thin, the guess is `other`.
"""

from __future__ import annotations

from dataclasses import dataclass

from trueport.core.taxonomy import Cause, Kind, Stage, Verdict

_NO_TRANSLATION = frozenset(
    {"DispatchError", "UnsupportedOperatorError", "OnnxExporterError", "SymbolicValueError", "UnsupportedOpError"}
)
_CAPTURE_LIMITS = frozenset(
    {
        "GuardOnDataDependentSymNode",
        "ConstraintViolationError",
        "UserError",
        "DataDependentOutputException",
        "DynamicOutputShapeException",
        "TorchExportError",
        "PendingUnbackedSymbolNotFound",
    }
)


@dataclass(frozen=True)
class Evidence:
    """What was observed.

    Attributes:
        verdict: of the check.
        stage: to which the failure was attributed.
        kind: what differs, or how it failed.
        exceptions: class names of the exception and of those it came from, outermost first.
        only_away: the example itself is right.
        only_sizes: nothing but other sizes of dynamic axes fails.
        misused: the user asked for something that cannot be (training mode, names used twice, inputs dropped).
        no_kernel: the runtime has no kernel for an operator of the file.
        optimized: the runtime fails only with its own optimizations; the first level at which it does, else ''.
    """

    verdict: Verdict
    stage: Stage | None
    kind: Kind
    exceptions: tuple[str, ...] = ()
    only_away: bool = False
    only_sizes: bool = False
    misused: bool = False
    no_kernel: bool = False
    optimized: str = ""


@dataclass(frozen=True)
class Guess:
    """A cause with the observation that it rests on."""

    cause: Cause
    because: str


def guess(evidence: Evidence) -> Guess:
    """Returns the cause that the evidence suggests."""
    for rule in (_misuse, _unsupported, _own_optimizer, _tracing, _types, _shapes, _crash, _wrong_value):
        found = rule(evidence)
        if found is not None:
            return found
    return Guess(Cause.OTHER, "the evidence fits no rule")


def _misuse(e: Evidence) -> Guess | None:
    if e.misused:
        return Guess(Cause.API_MISUSE, "the exporter was asked for something that it cannot give")
    return None


def _unsupported(e: Evidence) -> Guess | None:
    if e.no_kernel:
        return Guess(Cause.INCOMPATIBILITY_EXTERNAL, "the runtime has no kernel for an operator of the file")
    missing = [name for name in e.exceptions if name in _NO_TRANSLATION]
    if missing and e.stage is Stage.NODE_CONVERSION:
        return Guess(Cause.INCOMPATIBILITY_EXTERNAL, f"no translation for an operator ({missing[0]})")
    return None


def _own_optimizer(e: Evidence) -> Guess | None:
    if e.stage is Stage.RUNTIME and e.optimized:
        return Guess(Cause.ALGORITHM_OPTIMIZATION, f"right with the runtime's optimizations off, not so {e.optimized}")
    return None


def _tracing(e: Evidence) -> Guess | None:
    if e.stage is Stage.LOAD_MODEL and any(name in _CAPTURE_LIMITS for name in e.exceptions):
        return Guess(Cause.ALGORITHM_TRACING, "the program depends on values or sizes that the capture must fix")
    if e.only_away and e.stage is Stage.LOAD_MODEL:
        return Guess(Cause.ALGORITHM_TRACING, "right at the example, wrong elsewhere, already in the captured program")
    if e.only_away and e.only_sizes:
        return Guess(Cause.ALGORITHM_TRACING, "only other sizes than the example's fail")
    return None


def _types(e: Evidence) -> Guess | None:
    if e.kind in (Kind.DTYPE, Kind.DECLARED_TYPE):
        return Guess(Cause.TYPE_TENSOR, "an output has another type than the source's")
    if e.exceptions and e.exceptions[0] in ("TypeError", "AttributeError"):
        return Guess(Cause.TYPE_CONVENTIONAL, f"{e.exceptions[0]} in the converter's own code")
    return None


def _shapes(e: Evidence) -> Guess | None:
    if e.kind in (Kind.SHAPE, Kind.RANK, Kind.OUTPUT_COUNT):
        return Guess(Cause.SHAPE, "an output has another shape than the source's")
    return None


def _crash(e: Evidence) -> Guess | None:
    if e.verdict is not Verdict.CRASHED:
        return None
    if e.stage is Stage.NODE_CONVERSION and e.exceptions:
        if "IndexError" in e.exceptions:
            return Guess(Cause.SHAPE, "an index or size does not fit in the converter's own code")
        return Guess(Cause.INCOMPATIBILITY_EXTERNAL, f"the translation of an operator failed ({e.exceptions[-1]})")
    return None


def _wrong_value(e: Evidence) -> Guess | None:
    if e.verdict is not Verdict.DIVERGENT:
        return None
    if e.stage is Stage.OPTIMIZATION:
        return Guess(Cause.ALGORITHM_OPTIMIZATION, "right before the optimization, wrong after it")
    if e.stage is Stage.RUNTIME:
        return Guess(Cause.ALGORITHM_LOGIC, "the file is right and the runtime's own operators compute something else")
    if e.stage in (Stage.NODE_CONVERSION, Stage.LOAD_MODEL):
        return Guess(Cause.ALGORITHM_LOGIC, "types and shapes are right, values are not")
    return None
