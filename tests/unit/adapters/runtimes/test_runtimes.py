"""Values of every kind through every runtime, and which operator a runtime lacks."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import parser

from trueport.adapters.runtimes import runtime
from trueport.adapters.runtimes._packed import from_storage, to_storage
from trueport.core.errors import UsageError

ALL = ("onnxruntime", "onnx-reference", "openvino")
HEAD = '<ir_version: 11, opset_import: ["": 22]> g '
ODD = {
    "bfloat16": (16, ml_dtypes.bfloat16),
    "float8e4m3fn": (17, ml_dtypes.float8_e4m3fn),
    "int4": (22, ml_dtypes.int4),
    "uint4": (21, ml_dtypes.uint4),
}


def written(body: str, folder: Path, head: str = HEAD) -> Path:
    path = folder / "model.onnx"
    onnx.save(parser.parse_model(head + body), str(path))
    return path


def run(name: str, body: str, feeds: dict[str, Any], folder: Path) -> list[Any]:
    return list(runtime(name).load(written(body, folder)).run(feeds))


@pytest.mark.parametrize("dtype", ODD)
@pytest.mark.parametrize("name", ALL)
def test_types_that_numpy_lacks_come_and_go(name: str, dtype: str, tmp_path: Path) -> None:
    number, kind = ODD[dtype]
    values = np.array([[1, 2, 3], [0, 5, 7]], np.float32)
    (out,) = run(
        name, f"({dtype}[2,3] x) => (float[2,3] y) {{ y = Cast <to = 1> (x) }}", {"x": values.astype(kind)}, tmp_path
    )
    assert np.array_equal(out, values.astype(kind).astype(np.float32))
    (out,) = run(
        name, f"(float[2,3] x) => ({dtype}[2,3] y) {{ y = Cast <to = {number}> (x) }}", {"x": values}, tmp_path
    )
    assert out.dtype == np.dtype(kind)
    assert np.array_equal(out.astype(np.float32), values.astype(kind).astype(np.float32))


@pytest.mark.parametrize(("kind", "low", "high"), [(ml_dtypes.int4, -8, 8), (ml_dtypes.uint4, 0, 16)])
def test_half_bytes_are_packed_and_unpacked(kind: Any, low: int, high: int) -> None:
    values = np.arange(low, high - 1).astype(np.int8).astype(kind).reshape(3, 5)
    number = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(kind))
    stored = to_storage(values)
    assert stored.nbytes == 8
    assert np.array_equal(from_storage(stored, number, (3, 5)).astype(int), values.astype(int))


@pytest.mark.parametrize("name", ["onnxruntime", "onnx-reference"])
def test_sequences_optionals_and_texts_come_and_go(name: str, tmp_path: Path) -> None:
    parts = [np.ones(2, np.float32), np.zeros(3, np.float32)]
    (out,) = run(name, "(seq(float[N]) x) => (seq(float[N]) y) { y = Identity (x) }", {"x": parts}, tmp_path)
    assert isinstance(out, list)
    assert all(np.array_equal(a, b) for a, b in zip(out, parts, strict=True))
    body = "(optional(float[N]) x) => (bool y) { y = OptionalHasElement (x) }"
    assert run(name, body, {"x": None}, tmp_path)[0].tolist() is False
    words = np.array(["a", "bé"], object)
    (out,) = run(name, "(string[2] x) => (string[2] y) { y = Identity (x) }", {"x": words}, tmp_path)
    assert out.tolist() == words.tolist()


@pytest.mark.parametrize("value", ["string[2]", "seq(float[N])", "optional(float[N])"])
def test_openvino_says_what_it_cannot_take(value: str, tmp_path: Path) -> None:
    path = written(f"({value} x) => ({value} y) {{ y = Identity (x) }}", tmp_path)
    made = runtime("openvino")
    with pytest.raises(Exception, match="only tensors of numbers") as raised:
        made.load(path)
    assert made.lacks_kernel(raised.value)


def test_openvino_is_fed_an_input_that_it_renames(tmp_path: Path) -> None:
    path = written(
        "(float[2] x) => (float[2] y) <int64 at = {0}> { s = SequenceConstruct (x) y = SequenceAt (s, at) }",
        tmp_path,
    )
    x = np.array([3, 4], np.float32)
    session = runtime("openvino").load(path)
    assert np.array_equal(session.run({"x": x})[0], x)
    with pytest.raises(ValueError, match="got none for x"):
        session.run({})


def test_openvino_sends_nothing() -> None:
    program = (
        "import sys; import trueport.adapters.runtimes.openvino; "
        "sys.exit(any(m.split('.')[0] == 'openvino_telemetry' for m in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


@pytest.mark.parametrize(
    ("name", "body", "operator"),
    [
        ("onnxruntime", "(bfloat16[2] x) => (bfloat16[2] y) { i = Identity (x) y = Sqrt (i) }", "Sqrt"),
        ("onnxruntime", "(complex64[2] x) => (complex64[2] y) { y = Identity (x) }", "Identity"),
        ("openvino", "(float[3,3] x) => (float y) { s = Sqrt (x) y = Det (s) }", "Det"),
    ],
)
def test_the_operator_without_a_kernel_is_named(name: str, body: str, operator: str, tmp_path: Path) -> None:
    made, path = runtime(name), written(body, tmp_path)
    with pytest.raises(Exception, match=r".") as raised:
        made.load(path)
    assert made.lacks_kernel(raised.value) == operator


@pytest.mark.parametrize("name", ALL)
def test_a_model_that_is_not_valid_lacks_no_kernel(name: str, tmp_path: Path) -> None:
    body = "(float[2] x) => (float[2] y) { a = Sqrt (b) b = Sqrt (a) y = Add (x, b) }"
    made, path = runtime(name), written(body, tmp_path)
    with pytest.raises(Exception, match=r".") as raised:
        made.load(path).run({"x": np.ones(2, np.float32)})
    assert made.lacks_kernel(raised.value) is None


@pytest.mark.parametrize("level", ["disabled", "basic", "extended", "all"])
def test_onnxruntime_has_its_four_levels(level: str, tmp_path: Path) -> None:
    session = runtime("onnxruntime").load(
        written("(float[2] x) => (float[2] y) { y = Neg (x) }", tmp_path), level=level
    )
    assert session.run({"x": np.ones(2, np.float32)})[0].tolist() == [-1, -1]


def test_openvino_has_no_other_devices() -> None:
    with pytest.raises(UsageError, match="no provider 'GPU'"):
        runtime("openvino", provider="GPU")
