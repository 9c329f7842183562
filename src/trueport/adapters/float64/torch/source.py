"""PyTorch subjects as the engines see them: leaves, dynamic axes, the eager module under its tape."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import torch

from trueport.adapters.float64.constants import KnownNumbers
from trueport.adapters.float64.torch.module import EagerModule, Reference, to_array
from trueport.adapters.float64.torch.observability import Unseen
from trueport.adapters.float64.torch.state import preserved
from trueport.adapters.protocols import Array, SourceReference
from trueport.adapters.sources.torch_dynamic import dynamic_axes, tensor_leaves, with_dynamic_axes
from trueport.core.options import DynamicAxis as RequestedAxis
from trueport.core.subject import Subject
from trueport.core.taxonomy import Kind
from trueport.core.trace import TracedRun
from trueport.inputs.draw import InputSet
from trueport.inputs.spec import DynamicAxis, LeafSpec
from trueport.oracle.noise import Draws


class TorchSource:
    """A module with its examples.

    Args:
        subject: of framework `torch`.
        seed: of all noise.
        requested: axes that the user made dynamic; they replace those of the source.
    """

    method = "tape: noise injected after every operator"
    stand_in: str | None = None

    def __init__(self, subject: Subject, seed: int, requested: Sequence[RequestedAxis] = ()) -> None:
        self.subject = with_dynamic_axes(subject, requested)
        self._eager = EagerModule(self.subject.model, self.subject.examples[0], seed=seed)

    @cached_property
    def axes(self) -> Sequence[DynamicAxis]:
        """The axes that may have other sizes."""
        return dynamic_axes(self.subject)

    @cached_property
    def leaves(self) -> Sequence[LeafSpec]:
        """The tensor inputs in flattening order."""
        return [
            LeafSpec(name, to_array(leaf), {a.axis: a for a in self.axes if a.input == name})
            for name, leaf in tensor_leaves(self.subject)
        ]

    @cached_property
    def weights(self) -> int:
        """The number of elements of its parameters and buffers."""
        model = self.subject.model
        return sum(t.numel() for t in (*model.parameters(), *model.buffers()))

    @property
    def computed(self) -> int:
        """Nothing: the tape of a run is not yet there when the input sets are chosen."""
        return 0

    @property
    def given(self) -> Sequence[tuple[Array, ...]]:
        """The further examples."""
        count = len(self.subject.examples)
        return [tuple(to_array(leaf) for _, leaf in tensor_leaves(self.subject, i)) for i in range(1, count)]

    def reference(self, inputs: InputSet, number: int, draws: Draws) -> Reference:
        """Returns outputs in float64 with their floors; see `EagerModule.reference`."""
        return self._eager.reference(inputs, number, draws)

    def real(self, inputs: InputSet, *, fresh_random: bool) -> tuple[Array, ...]:
        """Returns the outputs of a plain run."""
        return self._eager.real(inputs, fresh_random=fresh_random)

    def trace(self, inputs: InputSet, *, draws: int, limit_bytes: int) -> TracedRun:
        """Returns one run with the values of all operators; see `EagerModule.trace`."""
        return self._eager.trace(inputs, draws=draws, limit_bytes=limit_bytes)

    def unseen(self, inputs: InputSet, threshold: float) -> list[Unseen] | None:
        """Returns the operators that no output shows at this input set; None where this cannot be determined."""
        return self._eager.unseen(inputs, threshold)

    def known_numbers(self, references: Sequence[SourceReference]) -> KnownNumbers:
        """Returns the parameters, the buffers, and the literals of the runs."""
        module = self.subject.model
        tensors = [_real_parts(t) for t in [*module.parameters(), *module.buffers()]]
        folds = any("BatchNorm" in type(m).__name__ for m in module.modules())
        literals: set[float] = set()
        types: set[str] = set()
        for reference in references:
            assert isinstance(reference, Reference)
            literals |= reference.tape.literals
            types |= reference.tape.types
        return KnownNumbers([to_array(t) for t in tensors if t.is_floating_point()], literals, types, folds=folds)

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Puts the module back as it was before the exporter touched it."""
        with preserved(self.subject.model):
            yield

    def notes(self) -> list[tuple[Kind, str]]:
        """Says where the module is in training mode and that matters."""
        modules = self.subject.model.named_modules()
        training = [n or type(m).__name__ for n, m in modules if m.training and _mode_matters(m)]
        if not training:
            return []
        named = ", ".join(training[:3]) + (f" and {len(training) - 3} more" if len(training) > 3 else "")
        return [(Kind.TRAINING_MODE, f"the module is checked in training mode, which matters for {named}")]

    def succeeds_otherwise(self, convert: Callable[[], bool]) -> tuple[Kind, str] | None:
        """Says when the same conversion succeeds without gradients."""
        with torch.no_grad():
            succeeded = convert()
        return (Kind.NEEDS_NO_GRAD, "the same conversion succeeds under torch.no_grad()") if succeeded else None


def _real_parts(tensor: torch.Tensor) -> torch.Tensor:
    """Complex numbers as pairs of real ones, as exporters write them."""
    held = tensor.detach()
    return torch.view_as_real(held.resolve_conj().resolve_neg()) if held.is_complex() else held


def _mode_matters(module: Any) -> bool:
    """Whether a module computes something else in training mode."""
    name = type(module).__name__
    drops = "Dropout" in name and getattr(module, "p", 0) > 0
    normalizes = "BatchNorm" in name or ("InstanceNorm" in name and getattr(module, "track_running_stats", False))
    return drops or normalizes
