"""Parts of a graph by themselves: the values at their borders, and whether two models of one part compute the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from trueport.adapters.float64.constants import KnownNumbers
from trueport.adapters.float64.onnx_program import OnnxProgram
from trueport.adapters.float64.replay.rounding import Budget
from trueport.core.trace import TracedNode
from trueport.inputs.draw import InputSet
from trueport.locate.places import Place
from trueport.locate.sequences import FoundSequence, Outcome
from trueport.oracle.compare import ReferenceOutput, compare_arithmetic, compare_meaning
from trueport.oracle.floor import elementwise_floor
from trueport.oracle.noise import ALARM

Array = NDArray[Any]
DRAWS = 6
"""Noisy runs of each of two parts behind the floor of their comparison."""


def with_sequence(place: Place, found: FoundSequence) -> Place:
    """Returns a place with what a search for a sequence found; a sequence is named only where it is one."""
    evidence = place.evidence | {
        "sequence_search": {
            "outcome": str(found.outcome), "operators": list(found.operators), "values": list(found.outputs),
            "barrier_cures": found.barrier, "tries": found.tries, "complete": found.complete,
        }
    }  # fmt: skip
    if found.outcome is not Outcome.SEQUENCE:
        return replace(place, evidence=evidence)
    names = " -> ".join(found.operators)
    message = f"{place.message}; {names} is wrong together, and each operator is right alone"
    return Place(message, place.nodes, evidence | {"sequence": list(found.operators)})


def recorded(program: OnnxProgram, inputs: InputSet, known: KnownNumbers) -> tuple[dict[str, Any], dict[str, str]]:
    """Returns the values of the main graph on one input set, inputs included, and the types that they really have."""
    values: dict[str, Any] = dict(program.feeds(inputs))

    def see(node: TracedNode, outputs: list[Any]) -> list[Any]:
        values.update({name: value for name, value in zip(node.outputs, outputs, strict=False) if name})
        return outputs

    program.followed(inputs, known, see)
    return values, program.value_types()


def differs(before: onnx.ModelProto, after: onnx.ModelProto, feeds: Mapping[str, Any], known: KnownNumbers) -> bool:
    """Whether two models compute different things in float64, beyond what their own noise explains.

    Args:
        before: the right one.
        after: what became of it; its outputs have the same names.
        feeds: inputs by name.
        known: the numbers that the source holds.
    """
    names = tuple(feeds)
    inputs = InputSet("part", "part", tuple(feeds[name] for name in names))
    programs = [OnnxProgram(model, names) for model in (before, after)]
    mains = [[wide.value for wide in program.evaluate(inputs, known)] for program in programs]
    if len(mains[0]) != len(mains[1]):
        return True
    if not any(_different(a, b, None, None) for a, b in zip(*mains, strict=True)):
        return False
    runs = [program.noisy(inputs, draws=DRAWS, seed=0, known=known) for program in programs]
    floors = [
        [_floor(value, i, column) for i, value in enumerate(main)] for main, column in zip(mains, runs, strict=True)
    ]
    return any(_different(a, b, f, g) for a, b, f, g in zip(*mains, *floors, strict=True))


def runs_differently(
    model: onnx.ModelProto, feeds: Mapping[str, Any], outputs: Sequence[Any], budgets: Mapping[str, Budget]
) -> bool:
    """Whether what a runtime gave for a model is further from float64 than rounding explains.

    Args:
        model: the part.
        feeds: inputs by name, as the runtime was given them.
        outputs: of the runtime.
        budgets: what its kernels may be off by.
    """
    names = tuple(feeds)
    program = OnnxProgram(model, names)
    inputs = InputSet("part", "part", tuple(feeds[name] for name in names))
    mains, runs = program.rounded(inputs, draws=ALARM.arithmetic, seed=0, budgets=budgets)
    if len(mains) != len(outputs):
        return True
    for i, (value, got, dtype) in enumerate(zip(mains, outputs, program.program.output_types, strict=True)):
        floor = _floor(value, i, runs)
        floor = np.zeros(value.shape) if floor is None else floor
        unstable = np.zeros(value.shape, bool)
        if value.dtype.kind not in "fc" and runs:
            unstable = np.logical_or.reduce([np.asarray(run[i]) != value for run in runs])
        reference = ReferenceOutput("", dtype or value.dtype.name, value, floor, floor, unstable, ALARM.arithmetic)
        if compare_arithmetic(reference, got).different:
            return True
    return False


def _different(want: Array, got: Array, floor: Array | None, own: Array | None) -> bool:
    zero = np.zeros(want.shape)
    meaning = zero if floor is None else floor
    reference = ReferenceOutput("", want.dtype.name, want, meaning, meaning, np.zeros(want.shape, bool), DRAWS)
    return compare_meaning(reference, got, extra_floor=own).different


def _floor(value: Array, index: int, runs: Sequence[Sequence[Array]]) -> Array | None:
    column = [np.asarray(run[index]) for run in runs if np.shape(run[index]) == value.shape]
    return elementwise_floor(value, column) if value.dtype.kind in "fc" and column else None
