"""What came of a reduction as frozen values; `to_json` of these is the schema `trueport.reduction/1`."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

import msgspec

from trueport.core.errors import StoreError
from trueport.core.program import Phase
from trueport.core.result import CheckResult, Finding

SCHEMA = "trueport.reduction/1"


class Answer(StrEnum):
    """What a candidate program shows.

    SAME: the failure that was started from, by its signature. OTHER: another failure; never kept, but put aside.
    NONE: no failure. UNUSABLE: it does not run, or nothing could be decided.
    """

    SAME = "same"
    OTHER = "other"
    NONE = "none"
    UNUSABLE = "unusable"


class Ending(StrEnum):
    """Why a reduction ended: nothing more can be taken away, or its budget was spent with the best so far."""

    MINIMAL = "minimal"
    BUDGET = "budget"


@dataclass(frozen=True)
class Step:
    """One accepted simplification: what was done, and how many nodes were left after it."""

    phase: Phase
    label: str
    nodes: int
    elapsed_s: float


@dataclass(frozen=True)
class Aside:
    """Another failure that was met on the way: its finding, and the folder of the program that shows it."""

    finding: Finding
    folder: str


@dataclass(frozen=True)
class Reduction:
    """The smallest program found that shows a failure, and how it was found.

    Attributes:
        signature: of the finding that was kept; '' where the user's own predicate decided.
        framework: `torch`, `tensorflow` or `onnx`.
        nodes_before: operations of the program that was started from.
        operators: of the reduced program, in the order in which they run.
        ending: `minimal` only where every single removal and change of the result was tried and lost the failure.
        tried: number of candidates judged, by answer; those answered from the cache are not counted.
        steps: the accepted simplifications, in order.
        asides: other failures.
        before: the check that was started from; None where the user's own predicate decided.
        after: the check of the reduced program in a fresh process; None as above.
        files: file name -> what it is, relative to the folder of the reduction.
        elapsed_s: wall time of the whole reduction.
    """

    origin: str
    framework: str
    signature: str
    nodes_before: int
    operators: tuple[str, ...]
    ending: Ending
    tried: dict[Answer, int]
    steps: tuple[Step, ...]
    asides: tuple[Aside, ...]
    before: CheckResult | None
    after: CheckResult | None
    files: dict[str, str] = field(default_factory=dict)
    elapsed_s: float = 0.0
    schema: str = SCHEMA

    def to_json(self, *, indent: int = 2) -> str:
        """Returns the reduction as JSON text of the schema `trueport.reduction/1`."""
        return msgspec.json.format(msgspec.json.encode(self, order="deterministic"), indent=indent).decode()

    @classmethod
    def from_json(cls, text: str | bytes) -> Reduction:
        """Returns the reduction that `to_json` wrote.

        Raises:
            StoreError: the text is no reduction of this schema.
        """
        try:
            result = msgspec.json.decode(text, type=cls)
        except msgspec.DecodeError as error:
            raise StoreError(f"expected a reduction of schema {SCHEMA}: {error}") from error
        if result.schema != SCHEMA:
            raise StoreError(f"expected a reduction of schema {SCHEMA}, got schema '{result.schema}'")
        return result
