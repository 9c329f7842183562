"""What to do about a failure, only where that is certain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from trueport.cause.evidence import Evidence
from trueport.cause.guess import Confidence, Guess
from trueport.core.taxonomy import Cause, Kind, Stage


@dataclass(frozen=True)
class Circumstances:
    """What else is known when advice is given.

    Attributes:
        converter: by name, or None.
        axes: `input axis N` of the axes that may have other sizes.
        parts: passes, rules or transformers that cure the failure when nothing but them is switched off.
        without_gradients: the same conversion succeeds without gradients.
        frozen_axis: what is said of an axis that was asked to be dynamic and is fixed in the file; '' for none.
    """

    converter: str | None = None
    axes: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()
    without_gradients: bool = False
    frozen_axis: str = ""


def advice(evidence: Evidence, guessed: Guess, circumstances: Circumstances) -> str:
    """Returns one sentence, or '' where nothing is certain."""
    if circumstances.without_gradients:
        return "export under torch.no_grad(): the same conversion succeeds there"
    if guessed.confidence is Confidence.LOW:
        return ""
    return _of_parts(evidence, circumstances) or _of_cause(evidence, guessed, circumstances)


def _of_parts(evidence: Evidence, circumstances: Circumstances) -> str:
    if not circumstances.parts:
        return ""
    named = " and ".join(circumstances.parts)
    if evidence.stage is Stage.RUNTIME:
        return f"pass disabled_optimizers=[{', '.join(map(repr, circumstances.parts))}] to the session"
    return f"switch off {named}" if evidence.stage is Stage.OPTIMIZATION else ""


def _of_cause(evidence: Evidence, guessed: Guess, circumstances: Circumstances) -> str:
    if guessed.cause is Cause.ALGORITHM_TRACING and evidence.only_sizes:
        return _of_sizes(circumstances)
    if evidence.kind is Kind.NO_KERNEL:
        return "run the file in a runtime that has the operator, or write the model without it"
    if guessed.cause is Cause.INCOMPATIBILITY_EXTERNAL and evidence.operators:
        named = _listed([name for name in evidence.operators if name])
        return f"write the model without {named}, or give the converter a translation for it" if named else ""
    if guessed.cause is Cause.ALGORITHM_OPTIMIZATION and evidence.stage is Stage.RUNTIME and evidence.optimized:
        return "with the runtime's optimizations off the file is right"
    if guessed.cause is Cause.ALGORITHM_OPTIMIZATION and circumstances.converter == "torch-dynamo":
        return "export with optimize=False: the model is right before the optimization"
    return ""


def _of_sizes(circumstances: Circumstances) -> str:
    if circumstances.frozen_axis:
        return f"{circumstances.frozen_axis}; what the program does with it depends on its size"
    argument = {"torch-dynamo": "dynamic_shapes", "torch-script": "dynamic_axes"}.get(circumstances.converter or "")
    if argument is None or not circumstances.axes:
        return ""
    named = _listed(circumstances.axes)
    return (
        f"a size of the example is baked in although {argument} names {named}: make the program take the size from its "
        "input"
    )


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
