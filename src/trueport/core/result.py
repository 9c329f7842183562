"""The result of a check as frozen values; `to_json` of these is the schema `trueport.check/1`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec

from trueport.core.errors import StoreError
from trueport.core.taxonomy import Cause, Kind, Lane, Role, Stage, Status, Symptom, Verdict

SCHEMA = "trueport.check/1"


@dataclass(frozen=True)
class InputInfo:
    """One tensor input of the subject at its example."""

    name: str
    dtype: str
    shape: tuple[int, ...]


@dataclass(frozen=True)
class SubjectInfo:
    """The model under test. `deterministic` is None where it could not be established."""

    name: str
    framework: str
    origin: str
    sha256: str
    deterministic: bool | None
    inputs: tuple[InputInfo, ...]


@dataclass(frozen=True)
class Floor:
    """How the tolerance came about: the method, draws per input, and the score from which a difference counts."""

    method: str
    k: int
    threshold: float


@dataclass(frozen=True)
class Elements:
    """Output elements over all inputs: compared, too near to a jump to be compared, not comparable at all."""

    compared: int = 0
    unstable: int = 0
    not_comparable: int = 0


@dataclass(frozen=True)
class StageRecord:
    """One checkpoint: the stage that it ends, what came of it, which lane decided, the largest score."""

    stage: Stage
    checkpoint: str
    status: Status
    lane: Lane = Lane.NONE
    score: float | None = None
    elapsed_s: float = 0.0


@dataclass(frozen=True)
class NodeRef:
    """A node of the source or of the converted graph; `source` is the line of the model that it came from."""

    name: str
    op_type: str
    module: str = ""
    source: str = ""
    role: Role = Role.CONCERNED
    score: float | None = None


@dataclass(frozen=True)
class Finding:
    """Something that a user should know. It need not change the verdict.

    `material` is False for a real difference that rounding in the model's own type hides on every input tried.
    """

    signature: str
    kind: Kind
    material: bool
    symptom: Symptom | None
    stage: Stage | None
    cause: Cause | None
    message: str
    nodes: tuple[NodeRef, ...] = ()
    input: str = ""
    evidence: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Check:
    """One subject through one converter to one runtime."""

    converter: str | None
    runtime: str
    options: dict[str, Any]
    verdict: Verdict
    symptom: Symptom | None
    stage: Stage | None
    cause: Cause | None
    score: float | None
    floor: Floor
    resolution: float | None
    inputs_tried: int
    elements: Elements
    stages: tuple[StageRecord, ...]
    findings: tuple[Finding, ...]
    explanation: str
    elapsed_s: float
    peak_memory_mb: float | None
    versions: dict[str, str]
    seed: int
    repeat: str

    @property
    def road(self) -> str:
        """What lies between the source and the runtime, for people."""
        return self.converter or ("candidate" if self.options.get("candidate") else "as it is")


@dataclass(frozen=True)
class CheckResult:
    """All checks of one subject. `exit_code`: 0 faithful, 1 divergent or crashed, 3 nothing decided."""

    subject: SubjectInfo
    checks: tuple[Check, ...]
    exit_code: int
    schema: str = SCHEMA

    def to_json(self, *, indent: int = 2) -> str:
        """Returns the result as JSON text of the schema `trueport.check/1`."""
        return msgspec.json.format(msgspec.json.encode(self, order="deterministic"), indent=indent).decode()

    @classmethod
    def from_json(cls, text: str | bytes) -> CheckResult:
        """Returns the result that `to_json` wrote.

        Raises:
            StoreError: the text is no result of this schema.
        """
        try:
            result = msgspec.json.decode(text, type=cls)
        except msgspec.DecodeError as error:
            raise StoreError(f"expected a result of schema {SCHEMA}: {error}") from error
        if result.schema != SCHEMA:
            raise StoreError(f"expected a result of schema {SCHEMA}, got schema '{result.schema}'")
        return result

    def assert_faithful(self) -> None:
        """Raises AssertionError with the explanation of each check that is not `faithful`."""
        bad = [check for check in self.checks if check.verdict is not Verdict.FAITHFUL]
        if bad or not self.checks:
            raise AssertionError(
                "\n\n".join(f"{c.road} -> {c.runtime}: {c.verdict}\n{c.explanation}\n{c.repeat}" for c in bad)
                or "nothing was checked"
            )


def exit_code(verdicts: list[Verdict]) -> int:
    """Returns 1 if any verdict is divergent or crashed, else 3 if any is inconclusive or none is there, else 0."""
    if any(v in (Verdict.DIVERGENT, Verdict.CRASHED) for v in verdicts):
        return 1
    if not verdicts or any(v is Verdict.INCONCLUSIVE for v in verdicts):
        return 3
    return 0
