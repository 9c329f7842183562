"""The checker's opinion, as text, whatever it raises."""

from __future__ import annotations

import time
from itertools import pairwise

import onnx
import pytest
from onnx import helper, parser

from trueport.onnxgraph.validate import complaints, first_line

GOOD = '<ir_version: 8, opset_import: ["": 18]> g (float[N, 3] x) => (float[N, 3] y) { y = Relu(x) }'
WRONG_SHAPE = GOOD.replace("(float[N, 3] y)", "(float[N, 4] y)")
WRONG_TYPE = GOOD.replace("(float[N, 3] y)", "(int64[N, 3] y)")


def _saved(tmp_path, model):
    path = tmp_path / "m.onnx"
    onnx.save(model, path)
    return path


def test_a_valid_file_has_none(tmp_path):
    assert complaints(_saved(tmp_path, parser.parse_model(GOOD))) == []


def test_an_unknown_operator(tmp_path):
    (told,) = complaints(_saved(tmp_path, parser.parse_model(GOOD.replace("Relu", "NoSuchOperator"))))
    assert told.startswith("checker: ")
    assert "NoSuchOperator" in told


def test_a_name_defined_twice(tmp_path):
    model = parser.parse_model(GOOD)
    model.graph.node.append(helper.make_node("Abs", ["x"], ["y"]))
    (told,) = complaints(_saved(tmp_path, model))
    assert told.startswith("checker: ")


@pytest.mark.parametrize("text", [WRONG_SHAPE, WRONG_TYPE])
def test_what_only_shape_inference_sees(tmp_path, text):
    (told,) = complaints(_saved(tmp_path, parser.parse_model(text)))
    assert told.startswith("shape inference: ")


def test_a_file_that_is_no_model(tmp_path):
    path = tmp_path / "m.onnx"
    path.write_bytes(b"\x00\x01 no protobuf at all")
    assert complaints(path)


def test_a_missing_file(tmp_path):
    assert complaints(tmp_path / "none.onnx")


@pytest.mark.parametrize(
    ("message", "line"),
    [
        ("one", "one"),
        ("\n\n  two  \nthree", "two"),
        ("", "ValueError"),
        ("  \n ", "ValueError"),
        ("x" * 1000, "x" * 300),
    ],
)
def test_first_line(message, line):
    assert first_line(ValueError(message)) == line


def test_a_hundred_thousand_nodes_are_checked_in_seconds(tmp_path):
    names = ["x", *(f"v{i}" for i in range(1, 100_000)), "y"]
    model = parser.parse_model(GOOD)
    del model.graph.node[:]
    model.graph.node.extend(helper.make_node("Relu", [a], [b]) for a, b in pairwise(names))
    path = _saved(tmp_path, model)
    started = time.process_time()
    assert complaints(path) == []
    assert time.process_time() - started < 20


def test_weights_beyond_the_size_of_a_message_are_not_read(tmp_path):
    count = 2**30
    model = parser.parse_model(GOOD.replace("y = Relu(x)", "y = Relu(x) z = Identity(w)"))
    weight = model.graph.initializer.add(name="w", data_type=1, dims=[count], data_location=1)
    weight.external_data.add(key="location", value="w.bin")
    with (tmp_path / "w.bin").open("wb") as file:
        file.truncate(4 * count)
    assert complaints(_saved(tmp_path, model)) == []
