"""Rules from evidence to the study's causes, the surest first.

Evidence is what was observed: classes of exceptions, which input sets fail, what differs, where it is introduced. Where
it is thin, the cause is `other`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from trueport.cause.evidence import Evidence
from trueport.core.taxonomy import Cause, Kind, Stage, Verdict

_NO_TRANSLATION = frozenset(
    {"DispatchError", "UnsupportedOperatorError", "OnnxExporterError", "SymbolicValueError", "UnsupportedOpError"}
)
_DEPENDS_ON_DATA = frozenset(
    {
        "GuardOnDataDependentSymNode",
        "ConstraintViolationError",
        "DataDependentOutputException",
        "DynamicOutputShapeException",
        "PendingUnbackedSymbolNotFound",
    }
)
_CAPTURE_LIMITS = _DEPENDS_ON_DATA | {"UserError", "TorchExportError"}
_REFUSALS = frozenset({"ValueError", "RuntimeError", "AssertionError"})
_LAYOUT = frozenset({"Reshape", "Expand", "Slice", "Squeeze", "Unsqueeze", "Tile", "Pad", "Flatten", "Split", "Concat"})
_SHAPE_KINDS = (Kind.SHAPE, Kind.RANK, Kind.OUTPUT_COUNT)


class Confidence(StrEnum):
    """How well the evidence carries a cause: hardly anything else fits; others are possible; it is a guess."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


@dataclass(frozen=True)
class Guess:
    """A cause with the observation that it rests on."""

    cause: Cause
    because: str
    confidence: Confidence = Confidence.LOW


def guess(evidence: Evidence) -> Guess:
    """Returns the cause that the evidence suggests."""
    rules = (_misuse, _unsupported, _refused_shape, _own_optimizer, _tracing, _types, _shapes, _crash, _wrong_value)
    for rule in rules:
        found = rule(evidence)
        if found is not None:
            return found
    return Guess(Cause.OTHER, "the evidence fits no rule")


def _misuse(e: Evidence) -> Guess | None:
    if e.misused:
        return Guess(Cause.API_MISUSE, e.misused, Confidence.HIGH)
    if e.kind is Kind.INPUT_MISSING:
        told = "an input that no output depends on is not among the file's inputs"
        return Guess(Cause.API_MISUSE, told, Confidence.MEDIUM)
    return None


def _unsupported(e: Evidence) -> Guess | None:
    external = Cause.INCOMPATIBILITY_EXTERNAL
    if e.no_kernel:
        return Guess(external, "the runtime has no kernel for an operator of the file", Confidence.HIGH)
    if e.foreign:
        told = f"the file holds operators that no operator set defines: {', '.join(e.foreign)}"
        return Guess(external, told, Confidence.HIGH)
    missing = [name for name in e.exceptions if name in _NO_TRANSLATION]
    if missing and e.stage is Stage.NODE_CONVERSION:
        return Guess(external, f"no translation for an operator ({missing[0]})", Confidence.HIGH)
    return None


def _refused_shape(e: Evidence) -> Guess | None:
    """What an operator takes is settled by type when a file is loaded, by shape when it runs."""
    refused = e.stage is Stage.RUNTIME and e.running and "InvalidArgument" in e.exceptions
    if refused and not e.only_away:
        told = "the file is loaded, so types fit, and an operator refuses the shapes of what it is given"
        level = f"; right with optimizations off, not so {e.optimized}" if e.optimized else ""
        return Guess(Cause.SHAPE, told + level, Confidence.MEDIUM)
    return None


def _own_optimizer(e: Evidence) -> Guess | None:
    if e.stage is Stage.RUNTIME and e.optimized:
        told = f"right with the runtime's optimizations off, not so {e.optimized}"
        return Guess(Cause.ALGORITHM_OPTIMIZATION, told, Confidence.HIGH)
    return None


def _tracing(e: Evidence) -> Guess | None:
    cause = Cause.ALGORITHM_TRACING
    if e.stage is Stage.LOAD_MODEL:
        limits = [name for name in e.exceptions if name in _CAPTURE_LIMITS]
        if limits:
            told = f"the program depends on values or sizes that the capture must fix ({limits[0]})"
            sure = any(name in _DEPENDS_ON_DATA for name in limits)
            return Guess(cause, told, Confidence.HIGH if sure else Confidence.MEDIUM)
        if e.only_away:
            told = "right at the example, wrong elsewhere, already in the captured program"
            return Guess(cause, told, Confidence.HIGH)
    if e.only_away and e.only_sizes:
        return Guess(cause, "only other sizes than the example's fail", Confidence.HIGH)
    if e.stage is Stage.LOAD_MODEL and e.dynamic and e.exceptions and e.exceptions[0] in _REFUSALS:
        told = f"axes were asked to be dynamic, and the capture refuses the program ({e.exceptions[0]})"
        return Guess(cause, told)
    return None


def _types(e: Evidence) -> Guess | None:
    if e.kind in (Kind.DTYPE, Kind.DECLARED_TYPE):
        return Guess(Cause.TYPE_TENSOR, "an output has another type than the source's", Confidence.HIGH)
    if e.located is not None and e.located.alone and e.located.differs is Kind.DTYPE:
        told = f"the value at the place is {e.located.got} where the source has {e.located.expected}"
        return Guess(Cause.TYPE_TENSOR, told, Confidence.MEDIUM)
    if e.exceptions and e.exceptions[0] in ("TypeError", "AttributeError"):
        return Guess(Cause.TYPE_CONVENTIONAL, f"{e.exceptions[0]} in the converter's own code", Confidence.MEDIUM)
    return None


def _shapes(e: Evidence) -> Guess | None:
    if e.located is not None and e.located.alone and e.located.differs in _SHAPE_KINDS:
        told = f"the value at the place is {e.located.got} where the source has {e.located.expected}"
        return Guess(Cause.SHAPE, told, Confidence.HIGH)
    if e.kind in _SHAPE_KINDS:
        return Guess(Cause.SHAPE, "an output has another shape than the source's", Confidence.HIGH)
    return None


def _crash(e: Evidence) -> Guess | None:
    if e.verdict is not Verdict.CRASHED:
        return None
    if e.stage is Stage.NODE_CONVERSION and e.exceptions:
        translated = [name.removeprefix("onnx::") for name in e.operators if name.startswith("onnx::")]
        layout = next((name for name in translated if name in _LAYOUT), None)
        if layout is not None:
            told = f"the operators are translated, and the converter fails on the shape that a {layout} makes"
            return Guess(Cause.SHAPE, told, Confidence.MEDIUM)
        if "IndexError" in e.exceptions:
            return Guess(Cause.SHAPE, "an index or size does not fit in the converter's own code")
        told = f"the translation of an operator failed ({e.exceptions[-1]})"
        return Guess(Cause.INCOMPATIBILITY_EXTERNAL, told, Confidence.MEDIUM if e.operators else Confidence.LOW)
    if e.stage is Stage.OPTIMIZATION:
        told = "what came before the optimization works, what came out of it does not"
        return Guess(Cause.ALGORITHM_OPTIMIZATION, told, Confidence.MEDIUM)
    return None


def _wrong_value(e: Evidence) -> Guess | None:
    if e.verdict is not Verdict.DIVERGENT:
        return None
    place = e.located is not None and e.located.alone
    logic, sure = Cause.ALGORITHM_LOGIC, Confidence.HIGH if place else Confidence.MEDIUM
    if e.stage is Stage.OPTIMIZATION and e.opsets:
        told = f"the step changes the operator set from {e.opsets[0]} to {e.opsets[1]}, and with it what is computed"
        return Guess(Cause.INCOMPATIBILITY_INTERNAL, told, Confidence.MEDIUM)
    if e.stage is Stage.OPTIMIZATION:
        told = "right before the optimization, wrong after it"
        return Guess(Cause.ALGORITHM_OPTIMIZATION, told, Confidence.HIGH)
    if e.stage is Stage.RUNTIME:
        return Guess(logic, "the file is right and the runtime's own operators compute something else", sure)
    if e.stage in (Stage.NODE_CONVERSION, Stage.LOAD_MODEL):
        told = "given the source's own values, of right type and shape, it computes others"
        return Guess(logic, told if place else "types and shapes are right, values are not", sure)
    if e.stage is Stage.NOT_DISTINGUISHABLE and place:
        told = "given the source's own values, of right type and shape, an operator of the file computes others"
        return Guess(logic, told, Confidence.MEDIUM)
    return None
