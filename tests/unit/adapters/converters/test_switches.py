"""Optimizers with their parts switched off: none off is the plain call, all off is the model before."""

from __future__ import annotations

import contextlib
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, parser
from onnx.reference import ReferenceEvaluator

from tests.unit.adapters.converters.test_onnx_to_onnx import TEXT, subject
from trueport.adapters.converters import converter
from trueport.adapters.protocols import ConverterOptions
from trueport.locate.switches import smallest_on
from trueport.onnxgraph.changes import changes

TOOLS = ("onnxscript-optimizer", "onnxsim", "onnxslim", "onnxoptimizer")
HEAD = '<ir_version: 8, opset_import: ["": 18]>\n'
MODELS = {
    "foldable": TEXT,
    "nothing to do": HEAD + "g (float[1,3] x) => (float[1,3] y) { y = Sin (x) }",
    "names twice": HEAD
    + """g (float[1,3] x) => (float[1,3] y) <float[1] w = {2.0}, float[1] v = {2.0}> {
      [n] a = Mul (x, w)
      [n] b = Mul (x, v)
      [n] y = Add (a, b)
    }""",
    "shared initializer": HEAD
    + """g (float[1,3] x) => (float[1,3] y) <float[3,3] w = {1,2,3,4,5,6,7,8,9}, float[3] c = {1,2,3}> {
      a = MatMul (x, w)
      b = Add (a, c)
      d = MatMul (b, w)
      e = Transpose <perm = [1, 0]> (d)
      f = Transpose <perm = [1, 0]> (e)
      y = Add (f, c)
    }""",
    "subgraph": HEAD
    + """g (float[1,3] x, bool[1] c) => (float[1,3] y) <float[1] one = {1.0}> {
      i = Identity (x)
      y = If (c) <
        then_branch = t () => (float[1,3] o) { k = Add (one, one) o = Mul (i, k) },
        else_branch = e () => (float[1,3] p) { p = Relu (i) }>
    }""",
    "function": """<ir_version: 8, opset_import: ["": 18, "f": 1]>
    g (float[1,3] x) => (float[1,3] y) { a = f.F (x) y = f.F (a) }
    <domain: "f", opset_import: ["": 18]> F (x) => (z) { s = Sin (x) z = Identity (s) }""",
}


def model_of(text: str) -> onnx.ModelProto:
    return parser.parse_model(text)


def run(model: onnx.ModelProto) -> np.ndarray:
    """Returns the output; the reference evaluator takes names that occur twice and changes nothing by itself."""
    feeds = {}
    for v in model.graph.input:
        shape = [d.dim_value for d in v.type.tensor_type.shape.dim]
        dtype = helper.tensor_dtype_to_np_dtype(v.type.tensor_type.elem_type)
        feeds[v.name] = np.arange(1, 1 + int(np.prod(shape))).reshape(shape).astype(dtype)
    return ReferenceEvaluator(model).run(None, feeds)[0]


@pytest.mark.parametrize("text", MODELS.values(), ids=MODELS)
@pytest.mark.parametrize("tool", TOOLS)
def test_none_off_is_the_plain_call_and_all_off_is_the_model_before(tool: str, text: str, tmp_path: Path) -> None:
    made, model = converter(tool), model_of(text)
    before = model.SerializeToString()
    switches = made.switches(model, ConverterOptions(tmp_path))
    assert switches is not None
    assert len(set(switches.names)) == len(switches.names) > 5
    plain = made.optimize(model_of(text), None)
    assert switches.run(frozenset()).model.SerializeToString() == plain.SerializeToString()
    off = switches.run(frozenset(switches.names)).model
    assert changes(model, off).removed == ()
    np.testing.assert_array_equal(run(off), run(model))
    assert switches.run(frozenset()).model.SerializeToString() == plain.SerializeToString()
    assert model.SerializeToString() == before


@pytest.mark.parametrize(
    ("tool", "parts"),
    [
        ("onnxscript-optimizer", ("patterns rewritten: TransposeTranspose",)),
        ("onnxoptimizer", ("fuse_consecutive_transposes",)),
        ("onnxsim", ("fuse_consecutive_transposes",)),
        ("onnxslim", ("EliminationTranspose",)),
    ],
)
def test_the_part_that_removes_two_transposes_is_found(tool: str, parts: tuple[str, ...], tmp_path: Path) -> None:
    switches = converter(tool).switches(model_of(MODELS["shared initializer"]), ConverterOptions(tmp_path))

    def gone(off: frozenset[str]) -> bool:
        return sum(n.op_type == "Transpose" for n in switches.run(off).model.graph.node) < 2

    found = smallest_on(switches.names, gone)
    assert found.minimal
    assert set(parts) <= set(found.on)
    assert len(found.on) <= 2


def test_the_folding_of_one_operator_is_found(tmp_path: Path) -> None:
    switches = converter("onnxscript-optimizer").switches(model_of(TEXT), ConverterOptions(tmp_path))

    def folded(off: frozenset[str]) -> bool:
        return all("three" not in n.output or n.op_type != "Add" for n in switches.run(off).model.graph.node)

    assert smallest_on(switches.names, folded).on == ("constants folded: Add",)


def test_a_rule_without_a_name_has_that_of_its_variable(tmp_path: Path) -> None:
    names = converter("onnxscript-optimizer").switches(model_of(TEXT), ConverterOptions(tmp_path)).names
    assert "patterns rewritten: mul_by_1_rule" in names
    assert not [name for name in names if "unnamed" in name]


def test_a_part_that_raises_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from onnx_ir.passes import common

    def broken(self: object, model: object) -> object:
        raise RuntimeError("broken")

    monkeypatch.setattr(common.DeduplicateInitializersPass, "call", broken)
    switches = converter("onnxscript-optimizer").switches(model_of(TEXT), ConverterOptions(tmp_path))
    assert switches is not None

    def raises(off: frozenset[str]) -> bool:
        with contextlib.suppress(Exception):
            switches.run(off)
            return False
        return True

    assert smallest_on(switches.names, raises).on == ("initializers deduplicated",)


def test_another_release_has_no_switches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = converter("onnxscript-optimizer")
    monkeypatch.setattr(type(made), "optimize", lambda self, model, opset: model)
    assert made.switches(model_of(TEXT), ConverterOptions(tmp_path)) is None


def test_a_converter_without_parts_has_none(tmp_path: Path) -> None:
    assert converter("onnx-version-converter").switches(subject().model, ConverterOptions(tmp_path)) is None
