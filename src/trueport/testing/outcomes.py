"""What came of a certification: named checks, each passed or failed with a reason."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from trueport.core.errors import ToolError


@dataclass(frozen=True)
class Outcome:
    """One check of an adapter.

    Attributes:
        name: of the check.
        passed: whether the adapter does what the check asks for.
        message: why not, or what should be known although it does.
    """

    name: str
    passed: bool
    message: str = ""


@dataclass(frozen=True)
class Report:
    """All checks of an adapter, in the order in which they were made."""

    adapter: str
    outcomes: tuple[Outcome, ...]

    @property
    def failed(self) -> tuple[Outcome, ...]:
        """The checks that the adapter did not pass."""
        return tuple(o for o in self.outcomes if not o.passed)

    def require(self) -> Report:
        """Returns the report.

        Raises:
            AdapterError: a check failed.
        """
        if self.failed:
            raise AdapterError(self)
        return self


class AdapterError(ToolError):
    """An adapter does not do what trueport relies on.

    Attributes:
        report: all checks.
    """

    def __init__(self, report: Report) -> None:
        lines = [f"  {o.name}: {o.message}" for o in report.failed]
        super().__init__(
            f"the adapter '{report.adapter}' failed {len(lines)} of {len(report.outcomes)} checks:\n" + "\n".join(lines)
        )
        self.report = report


class Unmet(AssertionError):  # noqa: N818 - it is caught and becomes an outcome
    """What a check asks for is not so; the message says what was expected and what came."""


def require(condition: bool, message: str) -> None:
    """Raises `Unmet` where a condition does not hold."""
    if not condition:
        raise Unmet(message)


def carried_out(adapter: str, checks: Mapping[str, Callable[[], str | None]]) -> Report:
    """Runs checks; whatever one raises is its failure, what one returns is its remark."""
    outcomes = []
    for name, check in checks.items():
        try:
            outcomes.append(Outcome(name, True, check() or ""))
        except Unmet as error:
            outcomes.append(Outcome(name, False, str(error)))
        except Exception as error:  # noqa: BLE001 - an adapter may raise anything, and that is the result
            outcomes.append(Outcome(name, False, f"raised {type(error).__name__}: {error}"))
    return Report(adapter, tuple(outcomes))
