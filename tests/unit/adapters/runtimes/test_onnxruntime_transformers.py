"""The parts of ONNX Runtime's optimizer: their names, and that switching one off does it."""

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import parser

from trueport.adapters.protocols import Switches
from trueport.adapters.runtimes import runtime
from trueport.adapters.runtimes.onnxruntime import OnnxRuntime
from trueport.adapters.runtimes.onnxruntime_transformers import transformers

HEAD = '<ir_version: 8, opset_import: ["": 18]> g '
GELU = """(float[2,4] x) => (float[2,4] y) <float root = {1.4142135}, float one = {1}, float half = {0.5}> {
    scaled = Div (x, root)
    bell = Erf (scaled)
    lifted = Add (bell, one)
    gated = Mul (x, lifted)
    y = Mul (gated, half)
}"""
LAYER_NORM = """(float[2,4] x) => (float[2,4] y)
<int64[1] axes = {-1}, float two = {2}, float eps = {1e-5}, float[4] scale = {1,2,3,4}, float[4] shift = {5,6,7,8}> {
    mean = ReduceMean (x, axes)
    centered = Sub (x, mean)
    square = Pow (centered, two)
    variance = ReduceMean (square, axes)
    stable = Add (variance, eps)
    deviation = Sqrt (stable)
    normal = Div (centered, deviation)
    scaled = Mul (normal, scale)
    y = Add (scaled, shift)
}"""
FOLDED = "(float[2] x) => (float[2] y) <float[2] a = {1,2}> { b = Add (a, a) \n y = Mul (x, b) }"
LINEAR = (
    "(float[2,2] x) => (float[2,2] y) <float[2,2] w = {1,2,3,4}, float[2] b = {1,2}> {"
    " p = MatMul (x, w) \n y = Add (p, b) }"
)
NORMAL = (
    "(float[1,1,4,4] x) => (float[1,1,3,3] y) <float[1,1,2,2] w = {1,2,3,4}, float[1,1,1] b = {1}> {"
    " c = Conv (x, w) \n y = Add (c, b) }"
)
TRANSPOSED = "(float[2,3] x) => (float[2,3] y) { t = Transpose <perm=[1,0]> (x) \n r = Relu (t) \n y = Transpose <perm=[1,0]> (r) }"  # noqa: E501
RECIPROCAL = "(float[4] x, float[4] d) => (float[4] y) <float one = {1}> { r = Div (one, d) \n y = Mul (r, x) }"
SAME = "(float[2] x) => (float[2] y) { i = Identity (x) \n y = Relu (i) }"
BLOCKED = "(float[1,8,4,4] x) => (float[1,8,4,4] y) <float[8,8,1,1] w> { c = Conv (x, w) \n y = Relu (c) }"
CHANGES = {
    "GeluFusion": GELU,
    "LayerNormFusion": LAYER_NORM,
    "ConstantFolding": FOLDED,
    "MatMulAddFusion": LINEAR,
    "ConvAddFusion": NORMAL,
    "TransposeOptimizer": TRANSPOSED,
    "DivMulFusion": RECIPROCAL,
    "EliminateIdentity": SAME,
    "NchwcTransformer": BLOCKED,
}


def switches(body: str, folder: Path, level: str | None = None) -> Switches:
    model = parser.parse_model(HEAD + body)
    if body is BLOCKED:
        weights = np.random.default_rng(0).standard_normal((8, 8, 1, 1)).astype(np.float32)
        model.graph.initializer.append(onnx.numpy_helper.from_array(weights, "w"))
    path = folder / "model.onnx"
    onnx.save(model, str(path))
    found = runtime("onnxruntime").switches(path, level)
    assert found is not None
    return found


def operators(model: onnx.ModelProto) -> Counter[str]:
    return Counter(f"{node.domain}:{node.op_type}" for node in model.graph.node)


@pytest.mark.parametrize("name", CHANGES)
def test_switching_a_transformer_off_changes_the_graph(name: str, tmp_path: Path) -> None:
    parts = switches(CHANGES[name], tmp_path)
    assert name in parts.names
    everything, without = parts.run(frozenset()).model, parts.run(frozenset({name})).model
    assert operators(everything) != operators(without)


def test_nothing_is_changed_with_everything_off(tmp_path: Path) -> None:
    for body in CHANGES.values():
        parts = switches(body, tmp_path)
        left = parts.run(frozenset(parts.names)).model
        given = onnx.load(str(tmp_path / "model.onnx"))
        assert operators(left) == operators(given)


def test_every_transformer_that_says_it_ran_is_among_the_names() -> None:
    """A name that is missing could never be blamed; the log names all but single rewrite rules."""
    code = (
        "import sys, onnxruntime as ort\n"
        "o = ort.SessionOptions(); o.log_severity_level = 0\n"
        "ort.InferenceSession(sys.stdin.buffer.read(), o, providers=['CPUExecutionProvider'])"
    )
    ran = set()
    for body in (LAYER_NORM, LINEAR):
        model = parser.parse_model(HEAD + body).SerializeToString()
        process = subprocess.run([sys.executable, "-c", code], input=model, capture_output=True, check=True)
        ran |= set(re.findall(r"GraphTransformer (\w+) modified", process.stderr.decode()))
    assert len(ran) > 30
    parts = OnnxRuntime().switches(Path("none.onnx"))
    known = {spelled for names in parts.spellings.values() for spelled in names}
    assert {name for name in ran if not re.fullmatch(r"Level\d_RuleBasedTransformer", name)} <= known


def test_names_are_sorted_and_few(tmp_path: Path) -> None:
    parts = OnnxRuntime().switches(tmp_path / "none.onnx")
    assert parts.names == tuple(sorted(set(parts.names)))
    assert 60 < len(parts.names) < 400
    assert parts.spellings["TransposeOptimizer"] == ("TransposeOptimizer", "TransposeOptimizer_CPUExecutionProvider")
    assert parts.spellings["GeluFusion"] == ("GeluFusion", "GeluFusionL1", "GeluFusionL2")


def test_a_file_that_is_no_library_has_no_names(tmp_path: Path) -> None:
    path = tmp_path / "nothing.so"
    path.write_bytes(
        b"\x00GeluFusion\x00Softmax\x00N11onnxruntime15MatMulAddFusionE\x00N11onnxruntime9MatMulAddFusionE\x00"
    )
    assert list(transformers(path, ())) == ["GeluFusion", "MatMulAddFusion"]


def test_a_name_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="Nonsense"):
        switches(SAME, tmp_path).run(frozenset({"Nonsense"}))


def test_with_nothing_off_it_is_what_users_get(tmp_path: Path) -> None:
    parts = switches(GELU, tmp_path)
    feeds = {"x": np.random.default_rng(1).standard_normal((2, 4)).astype(np.float32)}
    run = parts.run(frozenset()).run
    assert run is not None
    plain = runtime("onnxruntime").load(tmp_path / "model.onnx").run(feeds)
    assert run(feeds)[0].tobytes() == plain[0].tobytes()


def test_a_level_limits_what_runs(tmp_path: Path) -> None:
    assert "com.microsoft:Gelu" not in operators(switches(GELU, tmp_path, "disabled").run(frozenset()).model)
    assert operators(switches(GELU, tmp_path).run(frozenset()).model) == Counter({"com.microsoft:Gelu": 1})


def test_what_the_optimizer_raises_is_raised_and_a_part_off_cures_it(tmp_path: Path) -> None:
    """Two rewrites remove the producer of a value together (microsoft/onnxruntime, version 1.32)."""
    body = (
        "(float[4] x, float[4] d) => (float[4] y) <float one = {1}> {"
        " same = Cast <to = 1> (x) \n r = Div (one, d) \n y = Mul (r, same) }"
    )
    parts = switches(body, tmp_path)
    with pytest.raises(Exception, match="same"):
        parts.run(frozenset())
    for name in ("DivMulFusion", "CastElimination"):
        run = parts.run(frozenset({name})).run
        assert run is not None
        (out,) = run({"x": np.array([1, 2, 3, 4], np.float32), "d": np.array([2, 4, 8, 16], np.float32)})
        assert out.tolist() == [0.5, 0.5, 0.375, 0.25]


@pytest.mark.parametrize("name", ["onnx-reference", "openvino"])
def test_runtimes_without_parts_have_none(name: str, tmp_path: Path) -> None:
    assert runtime(name).switches(tmp_path / "model.onnx") is None
