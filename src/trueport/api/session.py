"""One subject checked in this process: source, references, every converter, every runtime.

This is what runs in a worker. It is a library function as well (`--no-isolate`), and knows nothing of processes.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import torch

from trueport.adapters import converters as converter_registry
from trueport.adapters import runtimes as runtime_registry
from trueport.adapters.float64.constants import KnownNumbers
from trueport.adapters.float64.torch.module import EagerModule, to_array
from trueport.adapters.float64.torch.observability import Unseen
from trueport.adapters.protocols import Converter, ConverterOptions, Runtime
from trueport.adapters.sources.torch_dynamic import dynamic_axes, named_axes, tensor_leaves, with_dynamic_axes
from trueport.api import conclude, metric, save
from trueport.api.walk import Walk
from trueport.bisect.references import References, collect, draw_until_comparable
from trueport.core.errors import UsageError
from trueport.core.options import CheckOptions
from trueport.core.result import Check, CheckResult, InputInfo, SubjectInfo, exit_code
from trueport.core.subject import Subject
from trueport.inputs.draw import draw_inputs, redraw
from trueport.inputs.spec import LeafSpec
from trueport.oracle.thresholds import THRESHOLDS

Emit = Callable[[dict[str, Any]], None]


class Session:
    """Everything about one subject that does not depend on a converter or a runtime.

    Args:
        subject: the model with its examples.
        options: the user's.
        emit: receives events (`phase`, `stage`, `record`) as they happen.
    """

    def __init__(self, subject: Subject, options: CheckOptions, emit: Emit) -> None:
        self.subject = with_dynamic_axes(subject, options.dynamic)
        self.options = options
        self.emit = emit
        self.axes = dynamic_axes(self.subject)
        leaves = tensor_leaves(self.subject)
        self.names = tuple(name for name, _ in leaves)
        refuse_bfloat16(subject, leaves)
        self.specs = [
            LeafSpec(name, to_array(leaf), {a.axis: a for a in self.axes if a.input == name}) for name, leaf in leaves
        ]
        self.source = EagerModule(self.subject.model, self.subject.examples[0], seed=options.seed)
        self.references: References | None = None

    def info(self, deterministic: bool | None) -> SubjectInfo:
        """Returns what the result says about the subject."""
        inputs = tuple(
            InputInfo(name, str(leaf.dtype).removeprefix("torch."), tuple(leaf.shape))
            for name, leaf in tensor_leaves(self.subject)
        )
        s = self.subject
        return SubjectInfo(s.name, s.framework, s.origin, s.sha256, deterministic, inputs)

    def run(self) -> CheckResult:
        """Returns the result of all checks, one for each converter and runtime."""
        self.emit({"event": "phase", "name": "source"})
        given = [
            tuple(to_array(leaf) for _, leaf in tensor_leaves(self.subject, i))
            for i in range(1, len(self.subject.examples))
        ]
        sets = draw_inputs(self.specs, samples=self.options.samples, seed=self.options.seed, given=given)
        self.references = collect(self.source, sets, lambda _: None)
        draw_until_comparable(
            self.references,
            lambda number: redraw(self.specs, number=number, seed=self.options.seed),
            needed=THRESHOLDS.comparable,
        )
        info = self.info(self.references.deterministic)
        self.emit({"event": "subject", "subject": _plain(info)})
        checks: list[Check] = []
        names: list[str | None] = [None] if self.options.candidate else list(self.options.converters)
        for name in names:
            checks += self._convert_and_run(name)
        return CheckResult(info, tuple(checks), exit_code([c.verdict for c in checks]))

    def _convert_and_run(self, name: str | None) -> list[Check]:
        assert self.references is not None
        self.emit({"event": "check-begins", "converter": name, "runtime": self.options.runtimes[0]})
        with tempfile.TemporaryDirectory(prefix="trueport-file-") as folder:
            started = time.perf_counter()
            converter = self._converter(name)
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
            with quiet(), state_kept(self.subject.model):
                walk.convert(converter, self.subject, settings)
            save.save(self, name, walk.file)
            spent = time.perf_counter() - started
            checks = []
            for runtime_name in self.options.runtimes:
                self.emit({"event": "check-begins", "converter": name, "runtime": runtime_name})
                with quiet():
                    checks.append(self._run(walk, converter, name, runtime_name, spent))
                self.emit({"event": "check", "check": _plain(checks[-1])})
            return checks

    def _run(self, walk: Walk, converter: Converter, name: str | None, runtime_name: str, spent_s: float) -> Check:
        started = time.perf_counter()
        runtime = self._runtime(runtime_name)
        steps = walk.run(runtime)
        assert self.references is not None
        made = conclude.check(
            self, walk, steps, converter=converter, converter_name=name, runtime=runtime,
            elapsed_s=spent_s + time.perf_counter() - started,
        )  # fmt: skip
        return metric.with_metric(made, self, walk.file, runtime)

    def _converter(self, name: str | None) -> Converter:
        if name is None:
            from trueport.adapters.converters.candidate import Candidate

            assert self.options.candidate is not None
            return Candidate(Path(self.options.candidate), self.options.name_map)
        return converter_registry.converter(name)

    def _runtime(self, name: str) -> Runtime:
        return runtime_registry.runtime(name, provider=self.options.provider, threads=self.options.threads)

    @cached_property
    def unseen(self) -> list[Unseen] | None:
        """The operators of the source that no output shows on any of the first input sets; None if undetermined."""
        assert self.references is not None
        common: list[Unseen] | None = None
        for inputs in self.references.inputs[:3]:
            found = self.source.unseen(inputs, THRESHOLDS.meaning)
            if found is None:
                return None
            numbers = {u.number for u in found}
            common = found if common is None else [u for u in common if u.number in numbers]
            if not common:
                return []
        return common

    def known_numbers(self) -> KnownNumbers:
        """Returns the numbers that the source holds."""
        assert self.references is not None
        module = self.subject.model
        tensors = [*module.parameters(), *module.buffers()]
        folds = any("BatchNorm" in type(m).__name__ for m in module.modules())
        literals: set[float] = set()
        types: set[str] = set()
        for reference in self.references.screens:
            literals |= reference.tape.literals
            types |= reference.tape.types
        return KnownNumbers([to_array(t) for t in tensors if t.is_floating_point()], literals, types, folds=folds)


def _plain(value: Any) -> Any:
    import msgspec

    return msgspec.to_builtins(value)


def refuse_bfloat16(subject: Subject, leaves: list[tuple[str, torch.Tensor]]) -> None:
    """Raises UsageError for a source in bfloat16, which NumPy, and so the arithmetic lane, cannot hold."""
    tensors = [*leaves, *subject.model.named_parameters(), *subject.model.named_buffers()]
    for name, tensor in tensors:
        if tensor.dtype is torch.bfloat16:
            raise UsageError(
                f"'{name}' is bfloat16[{','.join(map(str, tensor.shape))}]; sources in float32 and float16 can be "
                "checked so far: check a float32 copy of the model (module.float())"
            )


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


@contextmanager
def state_kept(module: torch.nn.Module) -> Iterator[None]:
    """Puts the module back as it was before the exporter touched it."""
    from trueport.adapters.float64.torch.state import preserved

    with preserved(module):
        yield
