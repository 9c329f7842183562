"""Faults in the ONNX checkpoints of a conversion: in the model of one stage and in all that come after it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import onnx

from tests.quality.localization.bench import SHOWS, Bench, Fault
from tests.quality.localization.onnx_mutators import MUTATORS, mutated
from tests.quality.localization.truth import before, source_nodes
from trueport.adapters.float64.onnx_program import OnnxProgram
from trueport.core.taxonomy import Stage

TRIES = 3
"""Nodes that are tried for each mutator before the next one is."""


@dataclass(frozen=True)
class _Edit:
    """One node wrong from one checkpoint on."""

    start: int
    value: str
    mutator: str
    seed: int

    def __call__(self, number: int, model: onnx.ModelProto) -> onnx.ModelProto | None:
        return mutated(model, self.value, self.mutator, self.seed) if number >= self.start else None


def onnx_faults(bench: Bench, stage: Stage, seed: int) -> Iterator[Fault]:
    """Yields faults that show in an output, each of another mutator, until no mutator is left.

    Args:
        bench: of the architecture.
        stage: in whose model the faults begin.
        seed: chooses.
    """
    rng = np.random.default_rng([seed, *stage.encode()])  # every stage has faults of its own
    starts = _starts(bench, stage)
    if not starts:
        return
    start = int(rng.choice(starts))
    checkpoint = bench.recorded[start]
    assert checkpoint.model is not None and isinstance(checkpoint.executable, OnnxProgram)
    constant = checkpoint.executable.constant_values()
    nodes = [n for n in checkpoint.model.graph.node if n.output and n.output[0] not in constant]
    source, converted = bench.source_before(start), bench.run_of(checkpoint)
    for mutator in rng.permutation(sorted(MUTATORS)):
        tried = 0
        for number in rng.permutation(len(nodes)):
            node = nodes[number]
            edit = _Edit(start, node.output[0], str(mutator), seed)
            if tried >= TRIES:
                break
            if edit(start, checkpoint.model) is None:
                continue
            tried += 1
            truth = source_nodes(source, converted, node.output[0])
            if truth and _shows(bench, edit):
                yield Fault(stage, str(mutator), node.op_type, node.name, truth, before(source, truth), edit)
                break


def _starts(bench: Bench, stage: Stage) -> list[int]:
    """Numbers of the stage's checkpoints that are another model than the one before, else its last one."""
    held = [(i, c) for i, c in enumerate(bench.recorded) if c.stage is stage and c.model is not None]
    changed = [i for i, c in held if i == 0 or c.model is not bench.recorded[i - 1].model]
    return changed or [i for i, _ in held][-1:]


def _shows(bench: Bench, edit: _Edit) -> bool:
    """Whether every model from the first wrong one on can be run and has a wrong output."""
    last: tuple[onnx.ModelProto, bool] | None = None
    for number in range(edit.start, len(bench.recorded)):
        model = bench.recorded[number].model
        assert model is not None
        if last is not None and last[0] is model:
            continue
        wrong = edit(number, model)
        if wrong is None or not bench.change(OnnxProgram(wrong, bench.session.names), number) > SHOWS:
            return False
        last = (model, True)
    return True
