"""Tools that make ONNX of ONNX: their checkpoints, what they leave alone, what they refuse."""

import copy
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper, parser

from trueport.adapters.converters import _onnx_to_onnx as shared
from trueport.adapters.converters import converter
from trueport.adapters.converters.onnxoptimizer import OnnxOptimizer
from trueport.adapters.protocols import Checkpoint, ConverterOptions
from trueport.core.errors import UsageError
from trueport.core.subject import Example, Subject
from trueport.core.taxonomy import Stage

TOOLS = ("onnxscript-optimizer", "onnxsim", "onnxslim", "onnxoptimizer", "onnx-version-converter")
TEXT = """
<ir_version: 8, opset_import: ["": 18]>
pooled (float[1,1,3,3] x) => (float[1,1,4,4] y)
<int64[8] pads = {0, 0, 1, 1, 0, 0, 1, 1}, float[1] one = {1.0}> {
    i = Identity (x)
    three = Add (one, one)
    s = Mul (i, three)
    padded = Pad (s, pads)
    y = MaxPool <kernel_shape = [2, 2], strides = [1, 1]> (padded)
}"""


def subject(text: str = TEXT, **options: Any) -> Subject:
    model = onnx.ModelProto()
    model.CopyFrom(parser.parse_model(text))
    feeds = {
        v.name: np.ones([d.dim_value for d in v.type.tensor_type.shape.dim], np.float32) for v in model.graph.input
    }
    return Subject("pooled", "onnx", "<object>", "0", model, (Example(kwargs=feeds),), export_options=options)


def converted(name: str, given: Subject, folder: Path, opset: int | None = None) -> tuple[Any, list[Checkpoint]]:
    made = converter(name)
    names = tuple(given.examples[0].kwargs)
    return made, list(made.convert(given, ConverterOptions(folder, opset, names)))


@pytest.mark.parametrize("name", TOOLS)
def test_the_checkpoints_are_those_of_the_plan(name: str, tmp_path: Path) -> None:
    given = subject()
    before = given.model.SerializeToString()
    made, checkpoints = converted(name, given, tmp_path)
    assert [(c.stage, c.name) for c in checkpoints] == list(made.plan)
    assert checkpoints[-1].path == tmp_path / "model.onnx"
    assert given.model.SerializeToString() == before
    assert {"onnx", *made.packages} - set(made.versions()) == set()


@pytest.mark.parametrize("name", ["onnxoptimizer", "onnxscript-optimizer"])
def test_the_passes_one_by_one_end_in_the_result_of_the_plain_call(name: str, tmp_path: Path) -> None:
    made, checkpoints = converted(name, subject(), tmp_path)
    steps = [c for c in checkpoints if c.stage is Stage.OPTIMIZATION]
    assert len(steps) == len(made.passes) + 1
    assert shared.serialized(steps[-2].model) == shared.serialized(steps[-1].model)
    assert shared.serialized(steps[0].model) != shared.serialized(steps[-1].model)


def test_passes_that_lead_elsewhere_do_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OnnxOptimizer, "steps", lambda self, model: iter([model] * len(self.passes)))
    made, checkpoints = converted("onnxoptimizer", subject(), tmp_path)
    steps = [c for c in checkpoints if c.stage is Stage.OPTIMIZATION]
    assert len(checkpoints) == len(made.plan)
    assert {c.name for c in steps} == {shared.OPTIMIZED}
    assert len({shared.serialized(c.model) for c in steps}) == 1


def test_a_large_model_is_optimized_in_one_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared, "PASS_BY_PASS_BYTES", 8)
    made, checkpoints = converted("onnxoptimizer", subject(), tmp_path)
    assert [(c.stage, c.name) for c in checkpoints] == list(made.plan)
    assert len(checkpoints) == 3


def test_the_pass_that_raises_is_the_one_that_is_due(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import onnxoptimizer

    plain = onnxoptimizer.optimize

    def optimize(model: onnx.ModelProto, passes: list[str] | None = None) -> onnx.ModelProto:
        if passes is None or "fuse_pad_into_pool" in passes:
            raise RuntimeError("cannot")
        return plain(model, passes)

    monkeypatch.setattr(onnxoptimizer, "optimize", optimize)
    made = converter("onnxoptimizer")
    came = []
    with pytest.raises(RuntimeError, match="cannot"):
        came.extend(iter_all(made, subject(), tmp_path, came))
    assert made.plan[len(came)] == (Stage.OPTIMIZATION, "fuse_pad_into_pool")


def iter_all(made: Any, given: Subject, folder: Path, came: list[str]) -> list[str]:
    for checkpoint in made.convert(given, ConverterOptions(folder, None, ("x",))):
        came.append(checkpoint.name)
    return []


@pytest.mark.parametrize(("opset", "wanted", "granted"), [(20, 19, 20), (None, 19, 19), (None, None, None)])
def test_the_version_converter_takes_the_opset_of_the_options_first(
    opset: int | None, wanted: int | None, granted: int | None, tmp_path: Path
) -> None:
    given = subject(**({} if wanted is None else {"target_opset": wanted}))
    _, checkpoints = converted("onnx-version-converter", given, tmp_path, opset)
    expected = granted or onnx.defs.onnx_opset_version()
    assert checkpoints[-1].model.opset_import[0].version == expected
    assert checkpoints[-1].facts["opset_requested"] == expected


def test_a_target_opset_that_is_no_number_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="whole number"):
        converted("onnx-version-converter", subject(target_opset="19"), tmp_path)


def test_unknown_options_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="dynamo cannot be passed to onnxslim"):
        converted("onnxslim", subject(dynamo=True), tmp_path)


def test_a_large_model_is_written_with_its_weights_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared, "LARGEST_MESSAGE_BYTES", 1000)
    model = onnx.ModelProto()
    model.CopyFrom(parser.parse_model(TEXT))
    weight = np.arange(2000, dtype=np.float32)
    model.graph.initializer.append(numpy_helper.from_array(weight, "unused"))
    before = copy.deepcopy(model)
    shared.save(model, tmp_path / "model.onnx")
    assert model == before
    assert (tmp_path / "model.onnx.data").stat().st_size >= weight.nbytes
    read = onnx.load(str(tmp_path / "model.onnx"))
    assert np.array_equal(numpy_helper.to_array(read.graph.initializer[-1]), weight)


def test_blame_names_the_node_in_the_frames() -> None:
    def at(node: onnx.NodeProto) -> None:
        raise ValueError(node.name)

    node = onnx.helper.make_node("Relu", ["x"], ["y"], name="first")
    with pytest.raises(ValueError, match="first") as raised:
        at(node)
    assert [(n.name, n.op_type) for n in shared.blame(raised.value)] == [("first", "Relu")]
    assert shared.blame(ValueError("nowhere")) == ()
