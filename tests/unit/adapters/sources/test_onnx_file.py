"""ONNX files as sources: what is loaded, what is refused, and with which words."""

from __future__ import annotations

import itertools
import os
import pickle
import time
from types import MappingProxyType

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper, parser

from trueport.adapters.sources.onnx_file import load, subject_of_onnx
from trueport.adapters.sources.registry import SourceRequest
from trueport.core.errors import UsageError

RELU = "(float[N, 3] x) => (float[N, 3] y) { y = Relu(x) }"


def _model(body=RELU, ir=8):
    return parser.parse_model(f'<ir_version: {ir}, opset_import: ["": 18]> g {body}')


def _request(path, inputs=None, shapes=MappingProxyType({})):
    return SourceRequest(str(path), False, inputs, shapes, 0)


def _saved(folder, model, name="m.onnx"):
    (folder / name).write_bytes(model if isinstance(model, bytes) else model.SerializeToString())
    return folder / name


def _loaded(folder, model, **options):
    return load(_request(_saved(folder, model), **options))


def test_a_file_becomes_a_subject(tmp_path):
    subject = _loaded(tmp_path, _model())
    assert (subject.name, subject.framework, subject.path) == ("m", "onnx", tmp_path / "m.onnx")
    assert subject.examples[0].kwargs["x"].shape == (2, 3)
    assert len(subject.sha256) == 64
    assert subject.model == _model()


def test_equal_seeds_give_equal_examples(tmp_path):
    first, second = (_loaded(tmp_path, _model()).examples[0].kwargs["x"] for _ in range(2))
    assert np.array_equal(first, second)


FOREIGN = {
    "truncated": (_model().SerializeToString()[:-9], "truncated"),
    "cut between fields": (_model().SerializeToString()[:2], "without graph"),
    "empty": (b"", "an empty file"),
    "png": (b"\x89PNG\r\n\x1a\n" + bytes(200), "a PNG image"),
    "text": (b"not a model at all\n" * 20, "a text file"),
    "pickle": (pickle.dumps({"weights": list(range(50))}), "a Python pickle"),
    "zip": (b"PK\x03\x04" + bytes(100), "a zip archive"),
    "lfs": (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "git lfs pull"),
}


@pytest.mark.parametrize("case", FOREIGN)
def test_files_that_are_no_model(tmp_path, case):
    content, message = FOREIGN[case]
    with pytest.raises(UsageError, match=message):
        _loaded(tmp_path, content)


def test_a_cycle_is_named_with_the_file(tmp_path):
    with pytest.raises(UsageError, match=r"m\.onnx': .*no cycle, got one of 2 nodes: Relu 'b'"):
        _loaded(tmp_path, _model("(float[3] x) => (float[3] y) { a = Add(x, b) b = Relu(a) y = Abs(b) }"))


def test_an_unknown_domain_loads(tmp_path):
    model = _model()
    model.graph.node[0].domain = "my.own"
    model.opset_import.append(helper.make_opsetid("my.own", 1))
    assert _loaded(tmp_path, model).model.graph.node[0].domain == "my.own"


# ---------------------------------------------------------------------- external data


def _external(location, count=3, **entries):
    model = _model(f"(float[{count}] x) => (float[{count}] y) {{ y = Add(x, w) }}")
    weight = model.graph.initializer.add(name="w", data_type=1, dims=[count], data_location=1)
    for key, value in {"location": location, **entries}.items():
        weight.external_data.add(key=key, value=str(value))
    return model


def test_external_data_is_read_and_counts_for_the_identity(tmp_path):
    data = tmp_path / "w.bin"
    data.write_bytes(bytes(4) + np.arange(3, dtype=np.float32).tobytes())
    subject = _loaded(tmp_path, _external("w.bin", offset=4, length=12))
    assert numpy_helper.to_array(subject.model.graph.initializer[0]).tolist() == [0, 1, 2]
    data.write_bytes(bytes(4) + np.ones(3, np.float32).tobytes())
    assert _loaded(tmp_path, _external("w.bin", offset=4, length=12)).sha256 != subject.sha256


@pytest.mark.parametrize(
    ("location", "entries", "message"),
    [
        ("missing.bin", {}, "does not exist"),
        ("../outside.bin", {}, "leads out of it"),
        ("..\\outside.bin", {}, "leads out of it"),
        ("/etc/passwd", {}, "leads out of it"),
        ("link.bin", {}, "a link that leads out of it"),
        ("folder", {}, "no plain file"),
        ("w.bin", {"offset": 8}, "has only 12 bytes"),
        ("w.bin", {"offset": -4}, "as a number of bytes"),
        ("w.bin", {"offset": 10**30}, "as a number of bytes"),
        ("w.bin", {"length": 8}, "got a length of 8"),
    ],
)
def test_external_data_that_is_not_there(tmp_path, location, entries, message):
    folder = tmp_path / "model"
    (folder / "folder").mkdir(parents=True)
    (tmp_path / "outside.bin").write_bytes(bytes(12))
    (folder / "w.bin").write_bytes(bytes(12))
    (folder / "link.bin").symlink_to(tmp_path / "outside.bin")
    with pytest.raises(UsageError, match=message):
        _loaded(folder, _external(location, **entries))


def test_a_file_larger_than_memory_is_refused_before_it_is_read(tmp_path):
    count = 2**33
    with (tmp_path / "w.bin").open("wb") as file:
        file.truncate(4 * count)
    model = _external("w.bin", count, length=4 * count)
    started = time.process_time()
    with pytest.raises(UsageError, match=r"GB of external data.*memory are free"):
        _loaded(tmp_path, model)
    assert time.process_time() - started < 5


@pytest.mark.slow
def test_more_weights_than_a_message_can_hold(tmp_path):
    count = 625_000_000
    with (tmp_path / "w.bin").open("wb") as file:
        file.truncate(4 * count)
    model = _external("w.bin", count, length=4 * count)
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 1
    subject = _loaded(tmp_path, model)
    assert len(subject.model.graph.initializer[0].raw_data) == 4 * count
    assert subject.path == tmp_path / "m.onnx"


def test_a_hundred_thousand_nodes_load_in_seconds(tmp_path):
    names = ["x", *(f"v{i}" for i in range(1, 100_000)), "y"]
    model = _model()
    del model.graph.node[:]
    model.graph.node.extend(helper.make_node("Relu", [a], [b]) for a, b in itertools.pairwise(names))
    started = time.process_time()
    _loaded(tmp_path, model)
    assert time.process_time() - started < 30


# ---------------------------------------------------------------------- a model in memory


def test_a_model_in_memory_with_its_feeds():
    model = _model()
    x = np.ones((5, 3), np.float32)
    subject = subject_of_onnx(
        model, {"x": x}, name="f:m", sha256="s", request=_request("f.py:m"), export_options={"target_opset": 17}
    )
    assert subject.examples[0].kwargs["x"] is x
    assert (subject.path, subject.export_options) == (None, {"target_opset": 17})
    assert subject.model is not model


@pytest.mark.parametrize(
    ("feeds", "message"),
    [
        ({"z": np.ones((2, 3), np.float32)}, r"gives 'z', which is no input of the model; its inputs are: x"),
        ({}, "the model also takes x"),
        ({"x": np.ones((2, 3))}, r"declared type float32, got float64\[2, 3\]"),
        ({"x": np.ones((2, 4), np.float32)}, r"declared shape \[N,3\], got float32\[2, 4\]"),
        ({"x": "text"}, "declared type float32"),
        ((1, 2, 3), "gives 3 values, but the model takes x"),
        ([], "empty list"),
        (7, "expected .* to be a dict of arrays"),
    ],
)
def test_feeds_that_do_not_fit(feeds, message):
    with pytest.raises(UsageError, match=message):
        subject_of_onnx(_model(), feeds, name="m", sha256="", request=_request("f.py:m"))


@pytest.mark.parametrize(
    ("dtype", "value", "accepted"),
    [
        ("float", [1.5, 2.0], True),
        ("float", [1, 2], True),
        ("int64", [1, 2], True),
        ("int64", [1.5, 2.0], False),
        ("int8", [1, 300], False),
        ("bfloat16", np.ones(2, np.float32), True),
        ("bfloat16", np.ones(2, np.float16).view("V2"), True),
        ("float", np.ones(2, np.float16), False),
        ("float", [[1.0], [1.0, 2.0]], False),
    ],
)
def test_numbers_are_converted_only_where_the_user_could_not_say_the_type(dtype, value, accepted):
    model = _model(f"({dtype}[2] x) => ({dtype}[2] y) {{ y = Identity(x) }}")
    if accepted:
        subject = subject_of_onnx(model, {"x": value}, name="m", sha256="", request=_request("f.py:m"))
        assert subject.examples[0].kwargs["x"].shape == (2,)
    else:
        with pytest.raises(UsageError, match="expected 'x'"):
            subject_of_onnx(model, {"x": value}, name="m", sha256="", request=_request("f.py:m"))


def test_several_sets():
    sets = [{"x": np.full((1, 3), i, np.float32)} for i in range(3)]
    subject = subject_of_onnx(_model(), sets, name="m", sha256="", request=_request("f.py:m"))
    assert [e.label for e in subject.examples] == ["example", "inputs[1]", "inputs[2]"]


def test_external_data_needs_a_folder():
    with pytest.raises(UsageError, match="got external data; load it"):
        subject_of_onnx(_external("w.bin"), None, name="m", sha256="", request=_request("f.py:m"))


# ---------------------------------------------------------------------- inputs from elsewhere


def test_an_archive_by_name_and_in_order(tmp_path):
    x = np.full((4, 3), 2, np.float32)
    for label, arrays in {"named": {"x": x}, "plain": {"arr_0": x}}.items():
        np.savez(tmp_path / f"{label}.npz", **arrays)
        subject = _loaded(tmp_path, _model(), inputs=str(tmp_path / f"{label}.npz"))
        assert np.array_equal(subject.examples[0].kwargs["x"], x)


def test_a_python_file_with_inputs(tmp_path):
    (tmp_path / "i.py").write_text(
        "import numpy as np\ninputs = [{'x': np.ones((k, 3), np.float32)} for k in (1, 2)]\n"
    )
    subject = _loaded(tmp_path, _model(), inputs=str(tmp_path / "i.py"))
    assert [e.kwargs["x"].shape for e in subject.examples] == [(1, 3), (2, 3)]


def _test_case(folder, number, *tensors):
    place = folder / f"test_data_set_{number}"
    place.mkdir()
    for i, tensor in enumerate(tensors):
        (place / f"input_{i}.pb").write_bytes(tensor.SerializeToString())


def test_test_cases_beside_the_file(tmp_path):
    for number in (10, 2):
        _test_case(tmp_path, number, numpy_helper.from_array(np.full((1, 3), number, np.float32)))
    examples = _loaded(tmp_path, _model()).examples
    assert [(e.label, e.kwargs["x"][0, 0]) for e in examples] == [("example", 2), ("test_data_set_10", 10)]


def test_sequences_and_optionals_in_test_cases(tmp_path):
    model = _model("(seq(float[2]) s, optional(float[2]) o) => (seq(float[2]) y) { y = Identity(s) }")
    values = [np.ones(2, np.float32), np.zeros(2, np.float32)]
    optional = onnx.OptionalProto()
    _test_case(tmp_path, 0, numpy_helper.from_list(values), optional)
    given = _loaded(tmp_path, model).examples[0].kwargs
    assert [v.tolist() for v in given["s"]] == [[1, 1], [0, 0]]
    assert given["o"] is None


def test_a_damaged_test_case_is_named(tmp_path):
    _test_case(tmp_path, 0, numpy_helper.from_array(np.ones((1, 3), np.float32)))
    (tmp_path / "test_data_set_0" / "input_0.pb").write_bytes(os.urandom(7) + b"\xff" * 40)
    with pytest.raises(UsageError, match=r"input_0\.pb' to hold the value of input 'x'"):
        _loaded(tmp_path, _model())


def test_a_shape_from_the_command_line_binds_its_symbols(tmp_path):
    model = _model("(float[N, T] x, float[T] w) => (float[N, T] y) { y = Mul(x, w) }")
    given = _loaded(tmp_path, model, shapes={"x": [5, 7]}).examples[0].kwargs
    assert (given["x"].shape, given["w"].shape) == ((5, 7), (7,))
    with pytest.raises(UsageError, match=r"to fit the declared \[N,3\], got \[2, 4\]"):
        _loaded(tmp_path, _model(), shapes={"x": [2, 4]})
    with pytest.raises(UsageError, match="names 'q', which is no input"):
        _loaded(tmp_path, _model(), shapes={"q": [2, 4]})


def test_an_input_too_large_to_be_drawn(tmp_path):
    model = _model("(float[40000, 40000] x) => (float[40000, 40000] y) { y = Relu(x) }")
    with pytest.raises(UsageError, match="to be drawn"):
        _loaded(tmp_path, model)


def test_an_initializer_that_is_an_input_has_its_value(tmp_path):
    body = "(float[3] x, float[3] w) => (float[3] y) { y = Add(x, w) }"
    for ir, names in ((8, ["x", "w"]), (3, ["x"])):
        model = _model(body, ir=ir)
        model.graph.initializer.append(numpy_helper.from_array(np.full(3, 7, np.float32), "w"))
        given = _loaded(tmp_path, model).examples[0].kwargs
        assert list(given) == names
        assert all(v.tolist() == [7, 7, 7] for k, v in given.items() if k == "w")
