"""A right file that a runtime computes wrongly or refuses: transformers, kernels, sequence, and the other engines."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import parser

from trueport.api.session import Session
from trueport.core.options import CheckOptions
from trueport.core.result import Check
from trueport.core.subject import Example, Subject
from trueport.core.taxonomy import Role, Stage, Verdict

CASTS = """<ir_version: 9, opset_import: ["": 18]>
g (float[2,3] x, float[2,3] d) => (float[2,3] y, float[2,3] z) <float one = {1}> {
  c = Cast <to = 1> (x)
  r = Div (one, d)
  y = Mul (c, r)
  z = Exp (x)
}"""
SOFTMAX = """<ir_version: 9, opset_import: ["": 18]>
g (float[1,2] x) => (float[1,2] y) { a = Mul (x, x)
  y = LogSoftmax <axis = 1> (a) }"""


def checked(text: str, feeds: dict[str, Any], runtime: str) -> Check:
    """Returns the check of a file as it is."""
    model: onnx.ModelProto = parser.parse_model(text)
    subject = Subject("m", "onnx", "m", "", model, (Example(kwargs=feeds),))
    return Session(subject, CheckOptions(runtimes=(runtime,), samples=1), lambda _: None).run().checks[0]


def located(check: Check) -> dict[str, Any]:
    """Returns the evidence of the place."""
    return dict(next(f.evidence["located"] for f in check.findings if "located" in f.evidence))


def test_a_kernel_is_named_with_what_the_other_engines_say() -> None:
    check = checked(SOFTMAX, {"x": np.array([[40.0, 1.0]], np.float32)}, "onnx-reference")
    assert (check.verdict, check.stage) == (Verdict.DIVERGENT, Stage.RUNTIME)
    told = located(check)
    assert told["sequence"] == ["LogSoftmax"]
    assert told["looking_changes_nothing"] is True
    assert told["other_engines"]["onnxruntime"] == "agrees with the source"
    node = next(f for f in check.findings if "located" in f.evidence).nodes[0]
    assert (node.op_type, node.role) == ("LogSoftmax", Role.INTRODUCES)


def test_transformers_that_fail_only_together_are_both_named() -> None:
    ones = np.ones((2, 3), np.float32)
    check = checked(CASTS, {"x": ones, "d": 2 * ones}, "onnxruntime")
    if check.verdict is Verdict.FAITHFUL:
        pytest.fail(f"onnxruntime {check.versions['onnxruntime']} computes this rightly: plant another fault here")
    told = located(check)
    assert told["parts"] == ["CastElimination", "DivMulFusion"]
    assert sorted(told["cures_alone"]) == told["parts"]
    assert told["sequence"] == ["Cast", "Div", "Mul"]
    assert told["sequence_search"]["outcome"] == "sequence"
