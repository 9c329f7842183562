"""`--save`: the folder is an ONNX test case that a runtime passes, and nothing of the user's is overwritten."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from onnx import numpy_helper
from torch import nn

import trueport
from tests.unit.api.models import classifier
from trueport.core.errors import UsageError
from trueport.onnxgraph.external import external_files


def check(folder: Path, model, args, **settings):
    return trueport.check(model, args, isolate=False, samples=1, save=str(folder), **settings)


def run_test_case(folder: Path) -> int:
    """Runs a test-case folder as ONNX's backend tests do; returns how many data sets there were."""
    session = onnxruntime.InferenceSession(str(folder / "model.onnx"), providers=["CPUExecutionProvider"])
    sets = sorted(folder.glob("test_data_set_*"))
    for place in sets:
        inputs, outputs = ([read(file) for file in files(place, kind)] for kind in ("input", "output"))
        feeds = {value.name: array for value, array in zip(session.get_inputs(), inputs, strict=True)}
        for got, expected in zip(session.run(None, feeds), outputs, strict=True):
            assert got.dtype == expected.dtype
            np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)
    return len(sets)


def files(place: Path, kind: str) -> list[Path]:
    return [place / f"{kind}_{number}.pb" for number in range(len(list(place.glob(f"{kind}_*.pb"))))]


def read(file: Path) -> np.ndarray:
    return numpy_helper.to_array(onnx.load_tensor(str(file)))


class TwoInputs(nn.Module):
    def forward(self, number: torch.Tensor, mask: torch.Tensor):
        return {"sum": number.sum(), "kept": torch.where(mask, number, 0.0), "count": mask.sum()}


def test_the_folder_is_a_test_case_that_the_runtime_passes(tmp_path):
    result = check(tmp_path / "new", TwoInputs(), (torch.arange(6.0), torch.tensor([True, False] * 3)))
    assert result.exit_code == 0
    folder = tmp_path / "new" / "torch-dynamo"
    mark = json.loads((folder / "trueport.json").read_text())
    assert run_test_case(folder) == len(mark["data_sets"]) >= 5
    assert mark["data_sets"][0] == "example"
    assert "NaN and infinity" not in mark["data_sets"]
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["torch-dynamo"]


def test_sizes_and_converters_have_their_sets(tmp_path):
    model, args = classifier()
    check(
        tmp_path, model, args, dynamic_shapes=classifier.dynamic_shapes, converters=("torch-dynamo", "torch-script"),
        nonfinite=True,
    )  # fmt: skip
    for converter in ("torch-dynamo", "torch-script"):
        labels = json.loads((tmp_path / converter / "trueport.json").read_text())["data_sets"]
        assert "size batch=7" in labels
        assert "NaN and infinity" in labels
        assert run_test_case(tmp_path / converter) == len(labels)


def test_outputs_are_the_source_s_own_where_the_file_is_wrong(tmp_path):
    class Halve(nn.Module):
        def forward(self, a):
            return a // 2

    result = check(tmp_path, Halve(), (torch.tensor([-7, 7]),), converters="torch-script")
    assert result.checks[0].verdict is trueport.Verdict.DIVERGENT
    assert read(tmp_path / "torch-script" / "test_data_set_0" / "output_0.pb").tolist() == [-4, 3]
    with pytest.raises(AssertionError):
        run_test_case(tmp_path / "torch-script")


def test_saving_again_replaces_our_own(tmp_path):
    model, args = classifier()
    check(tmp_path, model, args)
    (tmp_path / "torch-dynamo" / "left.over").touch()
    check(tmp_path, model, args)
    assert not (tmp_path / "torch-dynamo" / "left.over").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["torch-dynamo"]


@pytest.mark.parametrize("content", [None, "{", "[]", '{"schema": "other/1"}'])
def test_what_is_not_ours_is_refused_before_any_work(tmp_path, content):
    foreign = tmp_path / "torch-dynamo"
    foreign.mkdir()
    (foreign / "precious.txt").write_text("mine")
    if content is not None:
        (foreign / "trueport.json").write_text(content)
    with pytest.raises(UsageError, match="no test case written by trueport"):
        trueport.check_path("does-not-exist.py", trueport.CheckOptions(save=str(tmp_path)))
    assert (foreign / "precious.txt").read_text() == "mine"


def test_a_file_in_the_place_of_the_folder_is_refused(tmp_path):
    (tmp_path / "torch-dynamo").touch()
    with pytest.raises(UsageError, match="got a file"):
        check(tmp_path, *classifier())


def test_external_data_comes_along(tmp_path):
    weight = numpy_helper.from_array(np.ones((64, 64), np.float32), "w")
    graph = onnx.parser.parse_graph("g (float[2,64] x) => (float[2,64] y) { y = MatMul(x, w) }")
    graph.initializer.append(weight)
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)], ir_version=9)
    (tmp_path / "given").mkdir()
    path = tmp_path / "given" / "net.onnx"
    onnx.save(model, str(path), save_as_external_data=True, location="w.bin", size_threshold=0)
    assert external_files(path) == [Path("w.bin")]

    class Source(nn.Module):
        def forward(self, x):
            return x @ torch.ones(64, 64)

    check(tmp_path / "out", Source(), (torch.randn(2, 64, generator=torch.Generator().manual_seed(0)),),
          candidate=str(path))  # fmt: skip
    assert (tmp_path / "out" / "candidate" / "w.bin").read_bytes() == (tmp_path / "given" / "w.bin").read_bytes()
    assert run_test_case(tmp_path / "out" / "candidate") >= 5


@pytest.mark.parametrize("location", ["../w.bin", "missing.bin", ""])
def test_external_data_outside_of_the_folder_is_refused(tmp_path, location):
    (tmp_path / "w.bin").write_bytes(bytes(4))
    (tmp_path / "given").mkdir()
    tensor = onnx.TensorProto(name="w", data_type=1, dims=[1], data_location=onnx.TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value=location)
    body = onnx.helper.make_graph([onnx.helper.make_node("Constant", [], ["c"], value=tensor)], "b", [], [])
    node = onnx.helper.make_node("If", ["x"], ["y"], then_branch=body, else_branch=body)
    model = onnx.ModelProto(graph=onnx.GraphProto(node=[node]))
    path = tmp_path / "given" / "net.onnx"
    path.write_bytes(model.SerializeToString())
    with pytest.raises(UsageError, match="external data of tensor 'w'"):
        external_files(path)
