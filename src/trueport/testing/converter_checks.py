"""What a converter must do so that a verdict about it can be trusted."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from trueport.adapters.protocols import Checkpoint, Converter, ConverterOptions
from trueport.api.session import Session, named_axes, quiet
from trueport.core.options import CheckOptions
from trueport.core.result import Check, NodeRef
from trueport.core.subject import Subject
from trueport.core.taxonomy import Stage, Verdict
from trueport.inputs.draw import draw_inputs
from trueport.testing.outcomes import require
from trueport.testing.planted import Planted

Make = Callable[[], Converter]


class _Given(Session):
    """A session whose converter is an object instead of a name."""

    def __init__(self, subject: Subject, converter: Converter, options: CheckOptions) -> None:
        super().__init__(subject, options, lambda _: None)
        self._given = converter

    @property
    def converters(self) -> tuple[str | None, ...]:
        return (self._given.name,)

    def _converter(self, name: str | None) -> Converter:
        del name
        return self._given


def checked(converter: Converter, subject: Subject, *, seed: int = 0) -> Check:
    """Returns the check of a subject through a converter to the first runtime of the defaults."""
    return _Given(subject, converter, CheckOptions(seed=seed)).run().checks[0]


def converter_checks(
    make: Make, subjects: Sequence[Subject], crashing: Mapping[Stage, Subject]
) -> dict[str, Callable[[], str | None]]:
    """Returns the checks by name; each makes a converter of its own.

    Args:
        make: returns a fresh converter.
        subjects: models that it converts rightly, each with an output of floating-point numbers.
        crashing: for a stage, a model on which the tool raises there.
    """
    checks: dict[str, Callable[[], str | None]] = {
        "names itself": lambda: _names_itself(make()),
        "blames with node references": lambda: _blames(make()),
    }
    for subject in subjects:
        of = f" [{subject.name}]"
        checks[f"follows its plan{of}"] = lambda s=subject: _follows_plan(make(), s)  # type: ignore[misc]
        checks[f"leaves the model as it is{of}"] = lambda s=subject: _leaves_model(make(), s)  # type: ignore[misc]
        checks[f"repeats itself{of}"] = lambda s=subject: _repeats(make, s)  # type: ignore[misc]
        checks[f"a right model is faithful{of}"] = lambda s=subject: _faithful(make(), s)  # type: ignore[misc]
        checks[f"a crash is of the stage that raised{of}"] = lambda s=subject: _crashes(make, s)  # type: ignore[misc]
        checks[f"a fault is of the stage that made it{of}"] = lambda s=subject: _faults(make, s)  # type: ignore[misc]
    for stage, subject in crashing.items():
        name = f"the tool's own crash is of its stage [{stage}]"
        checks[name] = lambda s=subject, at=stage: _own_crash(make(), s, at)  # type: ignore[misc]
    return checks


def _names_itself(converter: Converter) -> None:
    require(isinstance(converter.name, str) and bool(converter.name), f"expected a name, got {converter.name!r}")
    require(bool(converter.frameworks), "expected at least one framework, got none")
    require(bool(converter.plan), "expected a plan with at least one checkpoint, got none")
    order = list(Stage)
    places = [order.index(stage) for stage, _ in converter.plan]
    require(places == sorted(places), f"expected stages in the order of a conversion, got {converter.plan}")
    versions = converter.versions()
    strings = all(isinstance(k, str) and isinstance(v, str) and v for k, v in versions.items())
    require(bool(versions) and strings, f"expected versions by package, got {versions!r}")


def _blames(converter: Converter) -> None:
    found = converter.blame(RuntimeError("raised nowhere"))
    right = isinstance(found, tuple) and all(isinstance(node, NodeRef) for node in found)
    require(right, f"expected a tuple of NodeRef, got {found!r}")


def _convert(converter: Converter, subject: Subject, folder: str) -> tuple[list[Checkpoint], Session]:
    session = _Given(subject, converter, CheckOptions())
    options = ConverterOptions(Path(folder), None, session.names, named_axes(session.axes))
    with quiet(), session.source.kept():
        return list(converter.convert(session.subject, options)), session


def _follows_plan(converter: Converter, subject: Subject) -> None:
    with tempfile.TemporaryDirectory(prefix="trueport-suite-") as folder:
        checkpoints, _ = _convert(converter, subject, folder)
        came, planned = [c.stage for c in checkpoints], [stage for stage, _ in converter.plan]
        require(came == planned, f"expected checkpoints of the stages {planned}, got {came}")
        files = [c for c in checkpoints if c.path is not None]
        require(len(files) == 1 and files[0] is checkpoints[-1], "expected the last checkpoint alone to have a path")
        path = Path(str(files[0].path)).resolve()
        inside = path.is_relative_to(Path(folder).resolve())
        require(inside and path.is_file(), f"expected a file in the folder of the options, got '{path}'")
        onnx.load(str(path))
        require(all(c.model is not None for c in files), "expected the model of the file beside its path, got none")


def _leaves_model(converter: Converter, subject: Subject) -> str | None:
    before = _content(subject.model)
    if before is None:
        return f"not checked for a {type(subject.model).__name__}"
    with tempfile.TemporaryDirectory(prefix="trueport-suite-") as folder:
        _convert(converter, subject, folder)
    require(_content(subject.model) == before, "expected the subject's model as it was, got another one")
    return None


def _content(model: Any) -> bytes | None:
    """What a model consists of, for frameworks that say so."""
    if isinstance(model, onnx.ModelProto):
        return bytes(model.SerializeToString(deterministic=True))
    state = getattr(model, "state_dict", None)
    if state is None:
        return None
    parts = [name.encode() + np.asarray(value.detach().cpu()).tobytes() for name, value in state().items()]
    return b"".join(parts) + str(model.training).encode()


def _repeats(make: Make, subject: Subject) -> None:
    results = []
    for _ in range(2):
        with tempfile.TemporaryDirectory(prefix="trueport-suite-") as folder:
            checkpoints, session = _convert(make(), subject, folder)
            inputs = draw_inputs(session.specs, samples=1, seed=0, given=list(session.source.given))[0]
            session.source.reference(inputs, 0, _draws())
            known = session.source.known_numbers([])
            results.append([wide.value for wide in checkpoints[-1].executable.evaluate(inputs, known)])
    first, second = results
    same = len(first) == len(second) and all(map(_identical, first, second))
    require(same, "expected two conversions to compute the same, got a difference")


def _identical(a: Any, b: Any) -> bool:
    return a.shape == b.shape and np.array_equal(a, b, equal_nan=a.dtype.kind in "fc")


def _draws() -> Any:
    from trueport.oracle.noise import ALARM

    return ALARM


def _told(check: Check) -> str:
    return f"{check.verdict} at stage {check.stage} ({check.explanation})"


def _faithful(converter: Converter, subject: Subject) -> None:
    check = checked(converter, subject)
    require(check.verdict is Verdict.FAITHFUL, f"expected faithful, got {_told(check)}")


def _positions(converter: Converter, subject: Subject) -> dict[Stage, int]:
    """The first checkpoint of every stage of the plan that a conversion of the subject has."""
    with tempfile.TemporaryDirectory(prefix="trueport-suite-") as folder:
        _convert(converter, subject, folder)
    first: dict[Stage, int] = {}
    for number, (stage, _) in enumerate(converter.plan):
        first.setdefault(stage, number)
    return first


def _crashes(make: Make, subject: Subject) -> None:
    for stage, position in _positions(make(), subject).items():
        check = checked(Planted(make(), position, raises=True), subject)
        right = check.verdict is Verdict.CRASHED and check.stage is stage
        require(right, f"raised at the {stage} checkpoint: expected crashed at {stage}, got {_told(check)}")


def _faults(make: Make, subject: Subject) -> None:
    for stage, position in _positions(make(), subject).items():
        check = checked(Planted(make(), position), subject)
        right = check.verdict is Verdict.DIVERGENT and check.stage is stage
        require(right, f"wrong from the {stage} checkpoint on: expected divergent at {stage}, got {_told(check)}")


def _own_crash(converter: Converter, subject: Subject, stage: Stage) -> None:
    check = checked(converter, subject)
    right = check.verdict is Verdict.CRASHED and check.stage is stage
    require(right, f"expected crashed at {stage}, got {_told(check)}")
