"""An operator may hold the root of two itself where the source divides by the float32 next to it, and no other one."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from trueport.adapters.sources import load_subject
from trueport.api.session import Session
from trueport.core.options import CheckOptions

WRITTEN = """
<ir_version: 9, opset_import: ["": 20]>
gelu (float[N, 6] x) => (float[N, 6] y) {
  root = Constant <value_float = ROOT> () one = Constant <value_float = 1.0> () half = Constant <value_float = 0.5> ()
  a = Div(x, root) b = Erf(a) c = Add(b, one) d = Mul(x, c) y = Mul(d, half)
}
"""
OPERATOR = """
<ir_version: 9, opset_import: ["": 20]>
gelu (float[N, 6] x) => (float[N, 6] y) { y = Gelu <APPROXIMATE> (x) }
"""
EXACT = OPERATOR.replace(" <APPROXIMATE>", "")


def compared(reference, candidate, folder):
    paths = [folder / "reference.onnx", folder / "candidate.onnx"]
    for text, path in zip((reference, candidate), paths, strict=True):
        onnx.save(onnx.parser.parse_model(text), path)
    options = CheckOptions(candidate=str(paths[1]), samples=1)
    (check,) = Session(load_subject(str(paths[0])), options, lambda _: None).run().checks
    return check


def test_a_root_that_the_source_holds_rounded_is_no_difference(tmp_path):
    check = compared(WRITTEN.replace("ROOT", str(np.float32(2**0.5))), EXACT, tmp_path)
    assert check.verdict == "faithful", check.explanation


@pytest.mark.parametrize("root", [1.4142, 1.41422])
def test_another_root_is_one(root, tmp_path):
    assert compared(WRITTEN.replace("ROOT", str(root)), EXACT, tmp_path).verdict == "divergent"


def test_another_operator_is_one(tmp_path):
    other = OPERATOR.replace("APPROXIMATE", 'approximate = "tanh"')
    assert compared(WRITTEN.replace("ROOT", str(np.float32(2**0.5))), other, tmp_path).verdict == "divergent"
    assert compared(EXACT, other, tmp_path).verdict == "divergent"
