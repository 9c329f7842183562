"""tf2onnx, stage by stage: its checkpoints, what it leaves untranslated, and what it is blamed for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

from trueport.adapters.converters import converter
from trueport.adapters.converters.tf2onnx import UnsupportedOpError
from trueport.adapters.protocols import Checkpoint, ConverterOptions
from trueport.adapters.sources.tensorflow_setup import import_tensorflow
from trueport.adapters.sources.tensorflow_source import traced
from trueport.core.subject import Example, Subject
from trueport.core.taxonomy import Stage

tf = import_tensorflow()
SPEC = tf.TensorSpec((None, 3), tf.float32, "x")
WEIGHT = np.arange(6, dtype=np.float32).reshape(3, 2)
X = np.array([[1, -2, 3], [0.5, 0, -1]], np.float32)


def subject(function: Any, *specs: Any) -> Subject:
    source = traced(tf.function(function, input_signature=list(specs or [SPEC])), None, {}, "the function")
    example = Example(kwargs={i.name: X for i in source.inputs})
    return Subject("f", "tensorflow", "<object>", "0", source, (example,))


def dense(x: Any) -> Any:
    return {"y": tf.nn.relu(tf.transpose(tf.transpose(x)) @ tf.constant(WEIGHT) + 1.0)}


def converted(given: Subject, folder: Path, opset: int | None = None) -> tuple[Any, list[Checkpoint]]:
    made = converter("tf2onnx")
    names = tuple(i.name for i in given.model.inputs)
    return made, list(made.convert(given, ConverterOptions(folder, opset, names)))


def test_the_checkpoints_are_those_of_the_plan(tmp_path: Path) -> None:
    made, checkpoints = converted(subject(dense), tmp_path)
    assert [(c.stage, c.name) for c in checkpoints] == list(made.plan)
    stages = [c.stage for c in checkpoints]
    assert stages[:2] == [Stage.LOAD_MODEL, Stage.NODE_CONVERSION]
    assert set(stages[2:-1]) == {Stage.OPTIMIZATION}
    assert stages[-1] is Stage.EXPORT
    assert checkpoints[-1].path == tmp_path / "model.onnx"
    assert {"tf2onnx", "onnx", "keras"} <= set(made.versions())


def test_every_stage_computes_what_the_source_computes(tmp_path: Path) -> None:
    given = subject(dense)
    expected = given.model({"x": X})[0]
    _, checkpoints = converted(given, tmp_path)
    models = [c.model for c in checkpoints if c.model is not None]
    assert len(models) == len(checkpoints) - 1
    for model in models:
        (value,) = ReferenceEvaluator(model).run(None, {model.graph.input[0].name: X})
        np.testing.assert_allclose(value, expected, rtol=1e-6)


def test_passes_change_the_model_and_one_that_changes_nothing_hands_it_on(tmp_path: Path) -> None:
    _, checkpoints = converted(subject(dense), tmp_path)
    before, *passes = [c.model for c in checkpoints if c.model is not None]
    assert [n.op_type for n in before.graph.node].count("Transpose") == 2
    assert "Transpose" not in [n.op_type for n in passes[-1].graph.node]
    assert any(first is second for first, second in zip([before, *passes], passes, strict=False))


@pytest.mark.parametrize("opset", [13, 18])
def test_the_opset_is_that_which_was_asked_for(tmp_path: Path, opset: int) -> None:
    _, checkpoints = converted(subject(dense), tmp_path, opset)
    versions = {entry.domain: entry.version for entry in onnx.load(tmp_path / "model.onnx").opset_import}
    assert versions[""] == opset
    assert checkpoints[-1].model is not None


def test_an_input_that_nothing_reads_does_no_harm(tmp_path: Path) -> None:
    other = tf.TensorSpec((2,), tf.float32, "unused")
    made, checkpoints = converted(subject(lambda x, unused: x * 2, SPEC, other), tmp_path)
    assert [(c.stage, c.name) for c in checkpoints] == list(made.plan)


def test_an_operator_without_translation_is_named_at_the_node_conversion(tmp_path: Path) -> None:
    """tf2onnx itself logs an error and writes an invalid file."""
    made = converter("tf2onnx")
    given = subject(lambda x: {"y": tf.math.erfc(tf.math.bessel_i0e(x)) + 1.0})
    steps = made.convert(given, ConverterOptions(tmp_path, None, ("x",)))
    assert next(steps).stage is Stage.LOAD_MODEL
    with pytest.raises(UnsupportedOpError, match="no translation for BesselI0e, Erfc; left in the file: 2 nodes") as at:
        next(steps)
    assert at.value.operators == ("BesselI0e", "Erfc")
    assert sorted(node.op_type for node in made.blame(at.value)) == ["BesselI0e", "Erfc"]
    assert all(node.name for node in made.blame(at.value))
    assert not (tmp_path / "model.onnx").exists()


def test_other_errors_are_blamed_on_no_node() -> None:
    assert converter("tf2onnx").blame(ValueError("no node")) == ()


def test_the_blame_lists_at_most_twenty_nodes() -> None:
    nodes = [onnx.helper.make_node("Strange", [], ["y"], name=f"n{i}") for i in range(30)]
    error = UnsupportedOpError(nodes)
    assert len(converter("tf2onnx").blame(error)) == 20
    assert "left in the file: 30 nodes" in str(error)
