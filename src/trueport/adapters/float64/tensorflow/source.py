"""TensorFlow subjects as the engines see them: a concrete function replayed node by node in float64."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import numpy as np

from trueport.adapters.float64.constants import KnownNumbers
from trueport.adapters.float64.replay.source import Replay, ReplayedReference, UnseenOperator
from trueport.adapters.float64.tensorflow.dialect import TENSORFLOW
from trueport.adapters.float64.tensorflow.functions import program_of_source
from trueport.adapters.protocols import Array, SourceReference
from trueport.adapters.sources.tensorflow_leaves import tensorflow_axes, tensorflow_given, tensorflow_leaves
from trueport.adapters.sources.tensorflow_source import TensorFlowSource
from trueport.core.options import DynamicAxis as RequestedAxis
from trueport.core.subject import Subject
from trueport.core.taxonomy import Kind
from trueport.core.trace import TracedRun
from trueport.inputs.draw import InputSet
from trueport.inputs.spec import DynamicAxis, LeafSpec
from trueport.oracle.noise import Draws
from trueport.oracle.stability import trusted

_FOLDED = frozenset({"FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3", "Rsqrt"})


class TensorFlowEngine:
    """A concrete function with its examples.

    Args:
        subject: of framework `tensorflow`; its model is a `TensorFlowSource`.
        seed: of all noise.
        requested: axes that the user made dynamic; they replace those of the signature.
    """

    method = "graph: noise injected after every node"
    stand_in: str | None = None

    def __init__(self, subject: Subject, seed: int, requested: Sequence[RequestedAxis] = ()) -> None:
        self.subject = subject
        self._requested = requested
        self._source: TensorFlowSource = subject.model
        self._program = program_of_source(self._source)
        self._replay = Replay(self._program, TENSORFLOW, seed)

    @cached_property
    def axes(self) -> Sequence[DynamicAxis]:
        """The axes without a fixed size, or those that the user named."""
        return tensorflow_axes(self.subject, self._requested)

    @cached_property
    def leaves(self) -> Sequence[LeafSpec]:
        """The tensor inputs in the order of the signature."""
        return tensorflow_leaves(self.subject, self._requested)

    @cached_property
    def weights(self) -> int:
        """The number of elements of its weights and constants."""
        return sum(int(np.size(c.value)) for c in self._program.constants.values())

    @cached_property
    def computed(self) -> int:
        """The number of elements that the operators give at the example."""
        example = InputSet("example", "example", tuple(leaf.example for leaf in self.leaves))
        return self._replay.computed(self._feeds(example))

    @property
    def given(self) -> Sequence[tuple[Array, ...]]:
        """The further examples."""
        return tensorflow_given(self.subject)

    def reference(self, inputs: InputSet, number: int, draws: Draws) -> ReplayedReference:
        """Returns outputs in float64 with their floors; what TensorFlow's own run does not confirm is unstable."""
        real = self.real(inputs, fresh_random=False)
        made = self._replay.reference(self._feeds(inputs), number, draws)
        outputs = made.outputs
        if len(real) == len(outputs):
            outputs = tuple(trusted(o, r) for o, r in zip(outputs, real, strict=True))
        return ReplayedReference(outputs, real, made.ties)

    def real(self, inputs: InputSet, *, fresh_random: bool) -> tuple[Array, ...]:
        """Returns the outputs of TensorFlow's own run; its random operators never repeat themselves.

        Raises:
            SourceError: the function itself refuses the inputs.
        """
        del fresh_random
        return tuple(self._source(self._feeds(inputs)))

    def trace(self, inputs: InputSet, *, draws: int, limit_bytes: int) -> TracedRun:
        """Returns one run with the values of all nodes; see `Replay.trace`."""
        return self._replay.trace(self._feeds(inputs), draws=draws, limit_bytes=limit_bytes)

    def unseen(self, inputs: InputSet, threshold: float) -> list[UnseenOperator] | None:
        """Returns the operators that no output shows at this input set; None where there are too many to try."""
        return self._replay.unseen(self._feeds(inputs), threshold)

    def known_numbers(self, references: Sequence[SourceReference]) -> KnownNumbers:
        """Returns the variables and constants."""
        del references
        values = [c.value.astype(np.float32) if c.dtype == "float32" else c.value for c in self._constants.values()]
        folds = any(name in _FOLDED for name in self._program.operators)
        return KnownNumbers(values, (), self._program.float_types, folds=folds)

    @property
    def _constants(self) -> Mapping[str, Any]:
        return self._program.constants

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Puts the variables back as they were before the converter ran the model."""
        variables = list(self._source.function.graph.variables)
        before = [v.numpy() for v in variables]
        try:
            yield
        finally:
            for variable, value in zip(variables, before, strict=True):
                if not np.array_equal(variable.numpy(), value):
                    variable.assign(value)

    def notes(self) -> list[tuple[Kind, str]]:
        """Names random operators, and those that TensorFlow computes in single precision only."""
        found = []
        if self._program.random:
            found.append((Kind.NONDETERMINISTIC, f"random numbers are drawn by {', '.join(self._program.random)}"))
        if self._program.coarse:
            message = f"computed in their own type, not in float64: {', '.join(self._program.coarse)}"
            found.append((Kind.LANE_MISSING, message))
        return found

    def succeeds_otherwise(self, convert: Callable[[], bool]) -> tuple[Kind, str] | None:
        """Returns nothing: there is no other condition to try."""
        del convert
        return None

    def _feeds(self, inputs: InputSet) -> dict[str, Array]:
        return dict(zip(self._program.input_names, inputs.arrays, strict=True))
