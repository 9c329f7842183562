"""Faults planted into a converter from outside: from one of its checkpoints on, or in the place of one.

The converter runs as it is; a proxy changes what it hands over. The change is one that no rounding explains: every
number of the first output of floating-point numbers is off by a half of itself and one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper

from trueport.adapters.float64.constants import KnownNumbers
from trueport.adapters.float64.onnx_program import OnnxProgram
from trueport.adapters.protocols import Array, Checkpoint, Converter, ConverterOptions, Executable, Switches, Wide
from trueport.core.result import NodeRef
from trueport.core.subject import Subject
from trueport.inputs.draw import InputSet

_FACTOR, _OFFSET = 1.5, 1.0
_NUMBERS = frozenset({onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE, onnx.TensorProto.FLOAT16})


class PlantedError(RuntimeError):
    """Raised where a converter was told to fail."""


class Planted:
    """A converter that is wrong from one place of its plan on.

    Args:
        converter: the real one.
        position: in the plan.
        raises: fail there instead of handing over something wrong.
    """

    def __init__(self, converter: Converter, position: int, *, raises: bool = False) -> None:
        self._converter = converter
        self._position = position
        self._raises = raises
        self.name = converter.name
        self.frameworks = converter.frameworks
        self.plan = converter.plan

    def convert(self, subject: Subject, options: ConverterOptions) -> Iterator[Checkpoint]:
        """Returns the real converter's checkpoints with the fault in them."""
        checkpoints = self._converter.convert(subject, options)
        self.plan = self._converter.plan  # some plans depend on the subject
        return self._faulty(checkpoints, options)

    def switches(self, model: Any, options: ConverterOptions) -> Switches | None:
        """Returns those of the converter."""
        return self._converter.switches(model, options)

    def blame(self, error: BaseException) -> tuple[NodeRef, ...]:
        """Returns what the real converter says."""
        return self._converter.blame(error)

    def versions(self) -> dict[str, str]:
        """Returns the versions of the real converter."""
        return self._converter.versions()

    def _faulty(self, checkpoints: Iterator[Checkpoint], options: ConverterOptions) -> Iterator[Checkpoint]:
        for number, checkpoint in enumerate(checkpoints):
            if number < self._position:
                yield checkpoint
                continue
            if self._raises:
                raise PlantedError("a planted fault")
            yield corrupted(checkpoint, options)


def corrupted(checkpoint: Checkpoint, options: ConverterOptions) -> Checkpoint:
    """Returns a checkpoint that computes something else; its file, where it has one, is another too."""
    if checkpoint.model is None:
        return replace(checkpoint, executable=WrongExecutable(checkpoint.executable))
    model = corrupted_model(checkpoint.model)
    path = checkpoint.path
    if path is not None:
        path = Path(options.folder) / "planted.onnx"
        onnx.save(model, str(path))
    program = OnnxProgram(model, options.input_names)
    return replace(checkpoint, executable=program, model=model, path=path, is_source=False)


def corrupted_model(model: onnx.ModelProto) -> onnx.ModelProto:
    """Returns a copy of a model, still valid, whose first output of floating-point numbers is off.

    Raises:
        ValueError: no output holds floating-point numbers.
    """
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    output = next((o for o in copy.graph.output if o.type.tensor_type.elem_type in _NUMBERS), None)
    if output is None:
        raise ValueError("expected a model with an output of floating-point numbers, got none; use another subject")
    before = f"{output.name}_before_the_planted_fault"
    _rename(copy.graph, output.name, before)
    dtype = helper.tensor_dtype_to_np_dtype(output.type.tensor_type.elem_type)
    factor, offset = f"{before}_factor", f"{before}_offset"
    for name, value in ((factor, _FACTOR), (offset, _OFFSET)):
        copy.graph.initializer.append(onnx.numpy_helper.from_array(np.array(value, dtype), name))
    copy.graph.node.append(helper.make_node("Mul", [before, factor], [f"{before}_scaled"]))
    copy.graph.node.append(helper.make_node("Add", [f"{before}_scaled", offset], [output.name]))
    return copy


def _rename(graph: onnx.GraphProto, old: str, new: str) -> None:
    """Renames a value where it is made and used, in nested graphs as well; one that nothing makes is handed on."""
    made = False
    waiting = [graph]
    while waiting:
        current = waiting.pop()
        for node in current.node:
            made = made or old in node.output
            for names in (node.input, node.output):
                for number, name in enumerate(names):
                    if name == old:
                        names[number] = new
            waiting += [a.g for a in node.attribute if a.HasField("g")]
    for tensor in graph.initializer:
        if tensor.name == old:
            tensor.name, made = new, True
    if not made:
        raise ValueError(f"expected output '{old}' to be computed by the model, got an input; use another subject")


class WrongExecutable:
    """Computes something else than what it wraps."""

    def __init__(self, right: Executable) -> None:
        self._right = right

    def evaluate(self, inputs: InputSet, known: KnownNumbers) -> list[Wide]:
        """Returns the outputs with the fault in them."""
        outputs = self._right.evaluate(inputs, known)
        wrong = _wrong([output.value for output in outputs])
        return [replace(output, value=value) for output, value in zip(outputs, wrong, strict=True)]

    def noisy(self, inputs: InputSet, *, draws: int, seed: int, known: KnownNumbers) -> list[list[Array]]:
        """Returns the noisy evaluations with the fault in them."""
        runs = self._right.noisy(inputs, draws=draws, seed=seed, known=known)
        return [_wrong(run) for run in runs]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._right, name)


def _wrong(values: Sequence[Array]) -> list[Array]:
    result, done = [], False
    for value in values:
        if not done and value.dtype.kind in "fc":
            result.append(np.asarray(value * _FACTOR + _OFFSET, dtype=value.dtype))
            done = True
        else:
            result.append(value)
    return result
