"""One subject checked in this process: source, references, every converter, every runtime.

This is what runs in a worker. It is a library function as well (`--no-isolate`), and knows nothing of processes, nor of
any framework: what runs the source is a `SourceEngine`.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

from trueport.adapters import converters as converter_registry
from trueport.adapters import runtimes as runtime_registry
from trueport.adapters.engines import source_engine
from trueport.adapters.float64.constants import KnownNumbers
from trueport.adapters.protocols import Converter, ConverterOptions, Runtime, Unseen
from trueport.api import causes, conclude, locate, metric, save, vote
from trueport.api.walk import Walk
from trueport.bisect.references import References, collect, draw_until_comparable
from trueport.core.errors import UsageError
from trueport.core.options import CheckOptions
from trueport.core.result import Check, CheckResult, InputInfo, SubjectInfo, exit_code
from trueport.core.subject import Subject
from trueport.core.taxonomy import Verdict
from trueport.inputs.draw import InputSet, draw_inputs, fewer, redraw
from trueport.inputs.spec import DynamicAxis
from trueport.oracle.noise import SCREEN, SCREEN_LARGE
from trueport.oracle.thresholds import THRESHOLDS

LARGE, DEAR = 5_000_000, 10_000_000
"""With more weights than the first, or more numbers computed in a run than the second, a model is large: fewer input
sets are tried unless `--samples` asks for a number."""
Emit = Callable[[dict[str, Any]], None]


class Session:
    """Everything about one subject that does not depend on a converter or a runtime.

    Args:
        subject: the model with its examples.
        options: the user's.
        emit: receives events (`phase`, `stage`, `record`) as they happen.
    """

    def __init__(self, subject: Subject, options: CheckOptions, emit: Emit) -> None:
        self.source = source_engine(subject, seed=options.seed, dynamic=options.dynamic)
        self.subject = self.source.subject
        self.options = options
        self.emit = emit
        self.axes = self.source.axes
        self.specs = list(self.source.leaves)
        self.names = tuple(spec.name for spec in self.specs)
        self.references: References | None = None
        usual = options.samples == CheckOptions().samples
        self.large = usual and (self.source.weights > LARGE or self.source.computed > DEAR)
        self.left_out = 0

    def info(self, deterministic: bool | None) -> SubjectInfo:
        """Returns what the result says about the subject."""
        inputs = tuple(InputInfo(s.name, s.example.dtype.name, tuple(s.example.shape)) for s in self.specs)
        s = self.subject
        return SubjectInfo(s.name, s.framework, s.origin, s.sha256, deterministic, inputs)

    @property
    def converters(self) -> tuple[str | None, ...]:
        """The names of the converters to check; None stands for a candidate, or for a source that is run as it is."""
        if self.options.candidate is not None:
            return (None,)
        return self.options.converters or converter_registry.defaults(self.subject.framework)

    def run(self) -> CheckResult:
        """Returns the result of all checks, one for each converter and runtime."""
        converters = {name: self._converter(name) for name in self.converters}
        self.emit({"event": "phase", "name": "source"})
        drawn = draw_inputs(
            self.specs, samples=self.options.samples, seed=self.options.seed, given=list(self.source.given)
        )
        sets = fewer(drawn) if self.large else drawn
        self.left_out = len(drawn) - len(sets)
        screen = SCREEN_LARGE if self.large else SCREEN
        self.references = collect(self.source, sets, lambda _: None, screen=screen)
        draw_until_comparable(
            self.references,
            lambda number: redraw(self.specs, number=number, seed=self.options.seed),
            needed=THRESHOLDS.comparable,
        )
        info = self.info(self.references.deterministic)
        self.emit({"event": "subject", "subject": _plain(info), "converters": list(self.converters)})
        checks: list[Check] = []
        for name, converter in converters.items():
            checks += self._convert_and_run(name, converter)
        return CheckResult(info, tuple(checks), exit_code([c.verdict for c in checks]))

    def _convert_and_run(self, name: str | None, converter: Converter) -> list[Check]:
        assert self.references is not None
        self.emit({"event": "check-begins", "converter": name, "runtime": self.options.runtimes[0]})
        with tempfile.TemporaryDirectory(prefix="trueport-file-") as folder:
            started = time.perf_counter()
            settings = ConverterOptions(
                Path(folder),
                self.options.opset,
                self.names,
                named_axes(self.axes),
                entered=lambda stage: self.emit(
                    {"event": "stage", "stage": stage, "checkpoint": f"{stage} (in progress)"}
                ),
            )
            walk = Walk(self.references, self.known_numbers(), self.options, self.emit)
            with quiet(), self.source.kept():
                walk.convert(converter, self.source, settings)
            save.save(self, name, walk.file)
            spent = time.perf_counter() - started
            voters = []
            for runtime_name in self.options.runtimes:
                self.emit({"event": "check-begins", "converter": name, "runtime": runtime_name})
                with quiet():
                    voters.append(self._run(walk, converter, name, runtime_name, spent))
                self.emit({"event": "check", "check": _plain(voters[-1].check)})
            return vote.settle(voters, self.references)

    def _run(self, walk: Walk, converter: Converter, name: str | None, runtime_name: str, spent_s: float) -> vote.Voter:
        started = time.perf_counter()
        runtime = self._runtime(runtime_name)
        steps = walk.run(runtime)
        assert self.references is not None
        made = conclude.check(
            self, walk, steps, converter=converter, converter_name=name, runtime=runtime,
            elapsed_s=spent_s + time.perf_counter() - started,
        )  # fmt: skip
        made = metric.with_metric(made, self, walk.file, runtime)
        if made.verdict in (Verdict.DIVERGENT, Verdict.CRASHED):
            if self.options.locate:
                # The verdict stands; a process that is lost in the search must not take it along.
                self.emit({"event": "locating", "check": _plain(made)})
                made = locate.located(self, walk, steps, made, runtime)
            made = causes.explained(self, walk, steps, made)
        return vote.Voter(made, steps)

    def _converter(self, name: str | None) -> Converter:
        if self.options.candidate is not None:
            from trueport.adapters.converters.candidate import Candidate

            return Candidate(Path(self.options.candidate), self.options.name_map)
        if name is None:
            from trueport.adapters.converters.unconverted import Unconverted

            return Unconverted()
        made = converter_registry.converter(name)
        if self.subject.framework not in made.frameworks:
            fitting = converter_registry.names_for(self.subject.framework)
            raise UsageError(
                f"{name} converts {' and '.join(sorted(made.frameworks))} models, and '{self.subject.origin}' is one "
                f"of {self.subject.framework}; for it there are: {', '.join(fitting)}"
            )
        return made

    def _runtime(self, name: str) -> Runtime:
        return runtime_registry.runtime(name, provider=self.options.provider, threads=self.options.threads)

    @cached_property
    def observed(self) -> Sequence[InputSet]:
        """The input sets at which hidden operators are looked for: of a large model the one with the least elements.

        Else one of them has small values: what saturates at the others hides nothing there.
        """
        assert self.references is not None
        if self.large:
            return [min(self.references.inputs, key=lambda s: sum(a.size for a in s.arrays))]
        small = [s for s in self.references.inputs[2:] if s.regime == "small"]
        return [*self.references.inputs[:2], *(small or self.references.inputs[2:3])][:3]

    @cached_property
    def unseen(self) -> list[Unseen] | None:
        """The operators of the source that no output shows on any of the first input sets; None if undetermined."""
        assert self.references is not None
        common: list[Unseen] | None = None
        for inputs in self.observed:
            found = self.source.unseen(inputs, THRESHOLDS.meaning)
            if found is None:
                return None
            numbers = {u.number for u in found}
            common = list(found) if common is None else [u for u in common if u.number in numbers]
            if not common:
                return []
        return common

    def known_numbers(self) -> KnownNumbers:
        """Returns the numbers that the source holds."""
        assert self.references is not None
        return self.source.known_numbers(self.references.screens)


def named_axes(axes: Sequence[DynamicAxis]) -> dict[str, dict[int, str]]:
    """Returns input -> axis -> symbol, as `dynamic_axes` of `torch.onnx.export` takes it."""
    result: dict[str, dict[int, str]] = {}
    for axis in axes:
        derived = axis.scale != 1 or axis.offset != 0
        name = f"{axis.scale}*{axis.symbol}+{axis.offset}" if derived else axis.symbol
        result.setdefault(axis.input, {})[axis.axis] = name
    return result


def _plain(value: Any) -> Any:
    import msgspec

    return msgspec.to_builtins(value)


@contextmanager
def quiet() -> Iterator[None]:
    """Keeps third-party warnings and logs off the user's terminal while tools run."""
    import logging
    import warnings

    previous = logging.root.manager.disable
    logging.disable(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(previous)
