"""What an oracle case is, and how a file of cases is written down.

A case states a truth about a module and its conversion that does not depend on the engine under test: either the
converted program means what the source means (`right`), or it does not. Half of the cases set thresholds
(`calibration`), the other half measures them (`test`).
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch import nn

T = TypeVar("T")
Inputs = tuple[Any, ...]
Subject = tuple[nn.Module, Inputs]

FIRST = "architecture-first"
REPAIRED = "architecture-repaired"
MEANING = "architecture-meaning"
OWN = "own"

CALIBRATION = "calibration"
TEST = "test"


@dataclass(frozen=True)
class OracleCase:
    """A module whose conversion is known to be right or wrong.

    `build(seed)` gives the module in evaluation mode and its example inputs. `elsewhere(seed)` gives further inputs,
    for a fault that the example does not show; they are for checking the case, a product finds its own.
    `dynamic_shapes` is what `torch.export.export` takes.
    """

    name: str
    build: Callable[[int], Subject]
    right: bool
    table: str
    role: str
    note: str
    elsewhere: Callable[[int], tuple[Inputs, ...]] | None = None
    dynamic_shapes: Any = None


def seeded(function: Callable[[], T]) -> Callable[[int], T]:
    """Gives `function` its own seeded random state and leaves the caller's alone."""

    def call(seed: int) -> T:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            return function()

    return call


class CaseList:
    """The cases of one file, all right or all wrong, in the order of their definition."""

    def __init__(self, *, right: bool) -> None:
        self.right = right
        self._cases: list[OracleCase] = []

    def __iter__(self) -> Iterator[OracleCase]:
        return iter(self._cases)

    def add(
        self,
        table: str,
        role: str,
        note: str,
        *,
        elsewhere: Callable[[], tuple[Inputs, ...]] | None = None,
        dynamic_shapes: Any = None,
    ) -> Callable[[Callable[[], Subject]], Callable[[], Subject]]:
        """Registers a builder under its own name with hyphens."""

        def register(builder: Callable[[], Subject]) -> Callable[[], Subject]:
            def build_in_evaluation_mode() -> Subject:
                module, args = builder()
                return module.eval(), args

            case = OracleCase(
                name=builder.__name__.replace("_", "-"),
                build=seeded(build_in_evaluation_mode),
                right=self.right,
                table=table,
                role=role,
                note=note,
                elsewhere=None if elsewhere is None else seeded(elsewhere),
                dynamic_shapes=dynamic_shapes,
            )
            self._cases.append(case)
            return builder

        return register
