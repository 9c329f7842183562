"""One architecture and one converter: its right conversion, faults in it, and what a check says of each."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from trueport.adapters import converters
from trueport.adapters.converters._onnx_checkpoint import file_checkpoint, model_checkpoint
from trueport.adapters.protocols import Checkpoint, ConverterOptions
from trueport.api.session import Session, named_axes, quiet
from trueport.core.options import CheckOptions
from trueport.core.result import Check, Finding, NodeRef
from trueport.core.subject import Subject
from trueport.core.taxonomy import Role, Stage, Verdict
from trueport.core.trace import TracedRun

SHOWS = 1e-4
"""Least relative change of an output that makes a fault one that a check has to find."""
LIMIT_BYTES = 2**30
INPUTS = 2
"""Input sets at which faults are judged; the right conversion is judged at all of them."""
Models = Callable[[int, onnx.ModelProto], onnx.ModelProto | None]
"""(number of a checkpoint, its right model) -> its wrong one; None where the fault cannot be in it."""


@dataclass(frozen=True)
class Fault:
    """A fault that is planted.

    Attributes:
        stage: in which it is.
        mutator: what was done.
        operator: of the node.
        node: name of the converted node.
        truth: names of the source's nodes that it stands for.
        before: names of the source's nodes from which those are computed.
        models: what becomes of the ONNX checkpoints; None where the converter itself runs with the fault in it.
        plant: context in which the converter has the fault.
    """

    stage: Stage
    mutator: str
    operator: str
    node: str
    truth: frozenset[str]
    before: frozenset[str]
    models: Models | None = None
    plant: Callable[[], AbstractContextManager[Any]] = nullcontext


@dataclass(frozen=True)
class Outcome:
    """What a check says of faults.

    Attributes:
        verdict: of the check.
        stage: of the check.
        nodes: names and roles of all nodes in the order in which they are told.
        places: number of places.
        ranks: of each fault, the place of its first right node among `nodes`, from 1; 0 where there is none.
        first_of_place: of each fault, whether some place begins with it.
        strangers: nodes said to introduce an error that stand for none of the faults. Nodes before a fault that are
            named after it, in the same place, are none: the converter made one of them all.
        how: `forced` or `matched by value`.
        message: of the finding.
        seconds: of the check.
    """

    verdict: Verdict
    stage: Stage | None
    nodes: tuple[tuple[str, str], ...] = ()
    places: int = 0
    ranks: tuple[int, ...] = ()
    first_of_place: tuple[bool, ...] = ()
    strangers: tuple[str, ...] = ()
    how: str = ""
    message: str = ""
    seconds: float = 0.0


@dataclass
class Replayed:
    """A converter that hands out checkpoints again that it made before, the later ones with faults in them."""

    inner: Any
    recorded: Sequence[Checkpoint]
    models: Mapping[int, onnx.ModelProto] = field(default_factory=dict)

    def __getattr__(self, name: str) -> Any:
        """Returns what the converter itself has."""
        return getattr(self.inner, name)

    @property
    def plan(self) -> tuple[tuple[Stage, str], ...]:
        """The checkpoints that were recorded."""
        return tuple((c.stage, c.name) for c in self.recorded)

    def convert(self, subject: Subject, options: ConverterOptions) -> Iterator[Checkpoint]:
        """Yields the checkpoints."""
        del subject
        for number, checkpoint in enumerate(self.recorded):
            model = self.models.get(number)
            if checkpoint.path is not None:
                assert checkpoint.model is not None
                path = Path(options.folder) / "model.onnx"
                onnx.save(model or checkpoint.model, str(path))
                yield file_checkpoint(checkpoint.name, path, options, checkpoint.facts)
            elif model is not None:
                yield model_checkpoint(checkpoint.stage, checkpoint.name, model, options, checkpoint.facts)
            else:
                yield checkpoint


class Bench:
    """A subject and a converter.

    Args:
        subject: the architecture.
        converter: by name.
        folder: for the right file.

    Attributes:
        right: what a check says without any fault.
        chosen: faults of each stage that were chosen so far.
    """

    def __init__(self, subject: Subject, converter: str, folder: Path) -> None:
        self.converter = converter
        self.session = Session(subject, CheckOptions(converters=(converter,), samples=1), lambda _: None)
        self._folder = folder
        self.chosen: dict[Stage, list[Fault]] = {}
        self._outputs: dict[tuple[int, int], list[Any]] = {}
        self.right = self.session.run().checks[0]
        references = self.session.references
        assert references is not None
        del references.inputs[INPUTS:], references.screens[INPUTS:]

    @property
    def inputs(self) -> Any:
        """The example."""
        assert self.session.references is not None
        return self.session.references.inputs[0]

    @cached_property
    def known(self) -> Any:
        """The numbers that the source holds."""
        return self.session.known_numbers()

    @cached_property
    def recorded(self) -> list[Checkpoint]:
        """The right conversion."""
        return self.converted()

    def options(self) -> ConverterOptions:
        """Returns what a check tells the converter."""
        return ConverterOptions(self._folder, None, self.session.names, named_axes(self.session.axes))

    def converted(self, last: int | None = None) -> list[Checkpoint]:
        """Returns the checkpoints of a conversion, those after the last one that is wanted left out."""
        found = []
        with quiet(), self.session.source.kept():
            for checkpoint in converters.converter(self.converter).convert(self.session.subject, self.options()):
                found.append(checkpoint)
                if last is not None and len(found) > last:
                    break
        return found

    def source_before(self, number: int) -> TracedRun:
        """Returns a run of what the checkpoint of this number was made from."""
        if number == 0:
            return self.session.source.trace(self.inputs, draws=0, limit_bytes=LIMIT_BYTES)
        return self.run_of(self.recorded[number - 1])

    def run_of(self, checkpoint: Checkpoint) -> TracedRun:
        """Returns a run of a checkpoint."""
        return checkpoint.executable.trace(self.inputs, self.known, draws=0, seed=0, limit_bytes=LIMIT_BYTES)

    def change(self, executable: Any, number: int) -> float:
        """Returns the largest relative change of an output on the example.

        NaN where one of the input sets cannot be run or gives no numbers: that is a crash, which is not measured here.
        """
        assert self.session.references is not None
        changes = []
        for place, inputs in enumerate(self.session.references.inputs):
            try:
                wrong = executable.evaluate(inputs, self.known)
            except Exception:  # noqa: BLE001 - whatever it raises, nothing can be compared
                return float("nan")
            changes.append(_change(self._right_outputs(number, place), wrong))
        return changes[0] if np.isfinite(changes).all() else float("nan")

    def _right_outputs(self, number: int, place: int) -> list[Any]:
        assert self.session.references is not None
        if (number, place) not in self._outputs:
            inputs = self.session.references.inputs[place]
            self._outputs[number, place] = self.recorded[number].executable.evaluate(inputs, self.known)
        return self._outputs[number, place]

    def judge(self, faults: Sequence[Fault]) -> Outcome:
        """Returns what a check says with these faults planted."""
        started = time.perf_counter()
        check = self._check(faults)
        return replace(outcome(check, faults), seconds=time.perf_counter() - started)

    def _check(self, faults: Sequence[Fault]) -> Check:
        if any(f.models is None for f in faults):
            (fault,) = faults
            with fault.plant():
                return self.session._convert_and_run(self.converter, converters.converter(self.converter))[0]
        models: dict[int, onnx.ModelProto] = {}
        for number, checkpoint in enumerate(self.recorded):
            for fault in faults:
                model = models.get(number, checkpoint.model)
                changed = None if model is None or fault.models is None else fault.models(number, model)
                if changed is not None:
                    models[number] = changed
        made = Replayed(converters.converter(self.converter), self.recorded, models)
        return self.session._convert_and_run(self.converter, made)[0]  # type: ignore[arg-type]  # a converter by hand


def _change(right: Sequence[Any], wrong: Sequence[Any]) -> float:
    worst = 0.0
    for a, b in zip(right, wrong, strict=True):
        if a.value.shape != b.value.shape:
            return float("nan")
        size = float(np.max(np.abs(a.value), initial=1e-30))
        worst = max(worst, float(np.max(np.abs(a.value - b.value.astype(a.value.dtype)), initial=0.0)) / size)
    return worst


def places(check: Check) -> list[Finding]:
    """Returns the findings that name a place."""
    return [f for f in check.findings if "located" in f.evidence]


def outcome(check: Check, faults: Sequence[Fault]) -> Outcome:
    """Returns what a check says of the faults that are in it."""
    told = places(check)
    nodes = [node for finding in told for node in finding.nodes]
    right = [fault.truth | {fault.node} for fault in faults]
    ranks = tuple(_rank(nodes, names) for names in right)
    first = tuple(any(f.nodes and f.nodes[0].name in names for f in told) for names in right)
    strangers = tuple(name for finding in told for name in _strangers(finding, faults))
    how = str(told[0].evidence["located"].get("how", "")) if told else ""
    return Outcome(
        check.verdict, check.stage, tuple((n.name, str(n.role)) for n in nodes), len(told), ranks, first, strangers,
        how, told[0].message if told else check.explanation,
    )  # fmt: skip


def _strangers(finding: Finding, faults: Sequence[Fault]) -> list[str]:
    allowed = frozenset[str]().union(*(f.truth | {f.node} for f in faults))
    for fault in faults:
        if finding.nodes and finding.nodes[0].name in fault.truth | {fault.node}:
            allowed |= fault.before
    return [n.name for n in finding.nodes if n.role is Role.INTRODUCES and n.name not in allowed]


def _rank(nodes: Sequence[NodeRef], names: frozenset[str]) -> int:
    return next((place for place, node in enumerate(nodes, 1) if node.name in names), 0)
