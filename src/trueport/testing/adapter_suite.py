"""Certifies converters and runtimes: that a verdict about them can be trusted.

As a function, for one adapter by name or object, or as a test class that is inherited from::

    class TestMine(adapter_suite.ConverterSuite):
        def make(self): return MyConverter()
        def subjects(self): return [my_subject()]
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType

from trueport.adapters import converters, runtimes
from trueport.adapters.protocols import Converter, Runtime
from trueport.core.errors import UsageError
from trueport.core.subject import Subject
from trueport.core.taxonomy import Stage
from trueport.testing.converter_checks import converter_checks
from trueport.testing.outcomes import AdapterError, Outcome, Report, carried_out
from trueport.testing.runtime_checks import runtime_checks
from trueport.testing.subjects import onnx_subjects

_NONE: Mapping[Stage, Subject] = MappingProxyType({})


def certify_converter(
    converter: str | Callable[[], Converter],
    *,
    subjects: Sequence[Subject] = (),
    crashing: Mapping[Stage, Subject] = _NONE,
) -> Report:
    """Returns the report on a converter that passed every check.

    Each subject is converted about a dozen times: the plan is followed, the model left as it was, a right conversion
    is faithful, and a crash or a wrong result that is planted at the first checkpoint of each stage is found there.

    Args:
        converter: its name, or what makes a fresh one.
        subjects: small models that it converts rightly, with an output of floating-point numbers; models of our own
            where it takes ONNX and none are given.
        crashing: for a stage, a model on which the tool itself raises in that stage.

    Raises:
        AdapterError: checks failed; it holds the report.
        UsageError: there is no such converter, or it takes no ONNX and no subjects are given.
    """
    return converter_report(converter, subjects=subjects, crashing=crashing).require()


def converter_report(
    converter: str | Callable[[], Converter],
    *,
    subjects: Sequence[Subject] = (),
    crashing: Mapping[Stage, Subject] = _NONE,
) -> Report:
    """Returns the report on a converter whatever it says; see `certify_converter`."""
    make = partial(converters.converter, converter) if isinstance(converter, str) else converter
    first = make()
    if not subjects and "onnx" not in first.frameworks:
        raise UsageError(
            f"certify_converter: '{first.name}' takes models of {', '.join(sorted(first.frameworks))}; expected "
            "subjects that it converts rightly, got none; pass `subjects`"
        )
    return carried_out(first.name, converter_checks(make, subjects or onnx_subjects(), crashing))


def certify_runtime(runtime: str | Callable[[], Runtime]) -> Report:
    """Returns the report on a runtime that passed every check.

    Small models with known results are run at each of its optimization levels; where a type that not every runtime has
    is refused, it must say that it lacks the kernel. Broken files must be refused.

    Args:
        runtime: its name, or what makes a fresh one.

    Raises:
        AdapterError: checks failed; it holds the report.
        UsageError: there is no such runtime.
    """
    return runtime_report(runtime).require()


def runtime_report(runtime: str | Callable[[], Runtime]) -> Report:
    """Returns the report on a runtime whatever it says; see `certify_runtime`."""
    make: Callable[[], Runtime] = partial(runtimes.runtime, runtime) if isinstance(runtime, str) else runtime
    return carried_out(make().name, runtime_checks(make))


class ConverterSuite:
    """A test class to inherit from; its one test lists what failed."""

    def make(self) -> Converter:
        """Returns a fresh converter."""
        raise NotImplementedError

    def subjects(self) -> Sequence[Subject]:
        """Returns models that the converter converts rightly; none for the models of this package."""
        return ()

    def crashing(self) -> Mapping[Stage, Subject]:
        """Returns, for stages, models on which the tool itself raises there."""
        return _NONE

    def test_it_is_certified(self) -> None:
        """Fails with the list of the checks that failed."""
        certify_converter(self.make, subjects=self.subjects(), crashing=self.crashing())


class RuntimeSuite:
    """A test class to inherit from; its one test lists what failed."""

    def make(self) -> Runtime:
        """Returns a fresh runtime."""
        raise NotImplementedError

    def test_it_is_certified(self) -> None:
        """Fails with the list of the checks that failed."""
        certify_runtime(self.make)


__all__ = [
    "AdapterError",
    "ConverterSuite",
    "Outcome",
    "Report",
    "RuntimeSuite",
    "certify_converter",
    "certify_runtime",
    "converter_report",
    "runtime_report",
]
