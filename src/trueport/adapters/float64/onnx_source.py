"""An ONNX model as the source: evaluated in float64 node by node."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np

from trueport.adapters.float64.constants import KnownNumbers
from trueport.adapters.float64.onnx import Float64Evaluator
from trueport.adapters.float64.onnx.dialect import ONNX
from trueport.adapters.float64.onnx.registry import MissingKernel
from trueport.adapters.float64.onnx_stand_in import StandIn
from trueport.adapters.float64.replay.source import Replay, ReplayedReference, UnseenOperator
from trueport.adapters.protocols import Array, SourceReference
from trueport.adapters.sources.onnx_leaves import onnx_axes, onnx_given, onnx_leaves
from trueport.core.errors import SourceError
from trueport.core.options import DynamicAxis as RequestedAxis
from trueport.core.subject import Subject
from trueport.core.taxonomy import Kind
from trueport.core.trace import TracedRun
from trueport.inputs.draw import InputSet
from trueport.inputs.spec import DynamicAxis, LeafSpec
from trueport.onnxgraph.interface import Interface, read_interface
from trueport.onnxgraph.nodes import random_operators
from trueport.oracle.noise import Draws

_FOLDED = frozenset({"BatchNormalization", "InstanceNormalization"})


class OnnxSource:
    """A `ModelProto` with its examples.

    Args:
        subject: of framework `onnx`; its examples hold every input by name.
        seed: of all noise.
        requested: axes that the user made dynamic, besides those that the model itself declares.
    """

    method = "graph: noise injected after every node"
    stand_in: str | None = None

    def __init__(self, subject: Subject, seed: int, requested: Sequence[RequestedAxis] = ()) -> None:
        self.subject = subject
        self._requested = requested
        evaluator = Float64Evaluator(subject.model)
        self._evaluator = evaluator
        self._runner: Replay | StandIn = Replay(evaluator, ONNX, seed)
        self._seed = seed
        if evaluator.missing:
            self._stand_in(evaluator.missing)
        elif subject.larger is not None:
            self.subject = self._with_accepted_example(subject)

    def _with_accepted_example(self, subject: Subject) -> Subject:
        """Returns the subject with the first of its drawn examples that it accepts; as it is where there is none."""
        assert subject.larger is not None
        for examples in chain([subject.examples], subject.larger()):
            tried = replace(subject, examples=examples)
            count = self._count(tried)
            if count:
                self.computed = count
                return tried
        return subject

    def _count(self, subject: Subject) -> int:
        """Returns how many numbers a run at the first example computes; 0 where it is refused."""
        if not isinstance(self._runner, Replay):
            return 0
        leaves = onnx_leaves(subject, self._requested)
        pairs = self._interface.pair([leaf.name for leaf in leaves], {})
        return self._runner.computed(self._interface.feeds(pairs, tuple(leaf.example for leaf in leaves)))

    def _stand_in(self, missing: tuple[str, ...]) -> StandIn:
        """Hands over to a runtime."""
        runner = StandIn(self.subject, self._seed, missing)
        self._runner = runner
        self.stand_in = runner.name
        self.method = f"{runner.name} stands in for {', '.join(missing)}: noise at inputs and weights"
        return runner

    @cached_property
    def leaves(self) -> Sequence[LeafSpec]:
        """The inputs in the order of the model, those left out of the example not among them."""
        return onnx_leaves(self.subject, self._requested)

    @cached_property
    def axes(self) -> Sequence[DynamicAxis]:
        """The axes that the model declares symbolic, and those that the user named."""
        return onnx_axes(self.subject, self._requested)

    @cached_property
    def weights(self) -> int:
        """The number of elements of its weights and constants."""
        return sum(int(np.size(c.value)) for c in self._evaluator.constants.values())

    @cached_property
    def computed(self) -> int:
        """The number of elements that the operators give at the example."""
        return self._count(self.subject)

    @property
    def given(self) -> Sequence[tuple[Array, ...]]:
        """The further examples."""
        return onnx_given(self.subject)

    def reference(self, inputs: InputSet, number: int, draws: Draws) -> ReplayedReference:
        """Returns outputs in float64 with their floors; see `Replay.reference`."""
        feeds = self._feeds(inputs)
        try:
            return self._runner.reference(feeds, number, draws)
        except SourceError as error:
            if number or not isinstance(error.__cause__, MissingKernel):
                raise
            # Some operators show only when they run that they have no kernel in this form.
            return self._stand_in((error.__cause__.operator,)).reference(feeds, number, draws)

    def real(self, inputs: InputSet, *, fresh_random: bool) -> tuple[Array, ...]:
        """Returns the outputs rounded to their own types; a model that draws random numbers never repeats them."""
        outputs = self._runner.real(self._feeds(inputs))
        if fresh_random and self._random:
            return tuple(np.full(o.shape, np.nan) for o in outputs)
        return outputs

    def trace(self, inputs: InputSet, *, draws: int, limit_bytes: int) -> TracedRun | None:
        """Returns one run with the values of all nodes; None where a runtime stands in for float64."""
        if not isinstance(self._runner, Replay):
            return None
        return self._runner.trace(self._feeds(inputs), draws=draws, limit_bytes=limit_bytes)

    def unseen(self, inputs: InputSet, threshold: float) -> list[UnseenOperator] | None:
        """Returns the operators that no output shows at this input set; None where there are too many to try."""
        return self._runner.unseen(self._feeds(inputs), threshold) if isinstance(self._runner, Replay) else None

    def known_numbers(self, references: Sequence[SourceReference]) -> KnownNumbers:
        """Returns the weights and the numbers among the attributes."""
        del references
        values = [c.value for c in self._evaluator.constants.values()]
        folds = any(node.op_type in _FOLDED for node in self.subject.model.graph.node)
        return KnownNumbers(values, self._evaluator.literals, self._evaluator.float_types, folds=folds)

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Does nothing: converters are handed copies."""
        yield

    def notes(self) -> list[tuple[Kind, str]]:
        """Names the operators that draw random numbers."""
        if not self._random:
            return []
        return [(Kind.NONDETERMINISTIC, f"random numbers are drawn by {', '.join(self._random)}")]

    def succeeds_otherwise(self, convert: Callable[[], bool]) -> tuple[Kind, str] | None:
        """Returns nothing: there is no other condition to try."""
        del convert
        return None

    def _feeds(self, inputs: InputSet) -> dict[str, Any]:
        return self._interface.feeds(self._pairs, inputs.arrays)

    @cached_property
    def _random(self) -> tuple[str, ...]:
        return random_operators(self.subject.model)

    @cached_property
    def _interface(self) -> Interface:
        return read_interface(self.subject.model)

    @cached_property
    def _pairs(self) -> dict[str, Any]:
        return self._interface.pair([leaf.name for leaf in self.leaves], {})
