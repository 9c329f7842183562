"""`Scan` of operator set 8, which scans each element of a batch as far as its length goes, against ONNX Runtime."""

from __future__ import annotations

import numpy as np
import onnxruntime as ort
import pytest
from onnx import parser

from trueport.adapters.float64.onnx import Float64Evaluator


@pytest.mark.parametrize("lengths", [None, [3, 1, 2]])
@pytest.mark.parametrize("backward", [0, 1])
def test_a_batch_of_sequences(lengths, backward):
    given = "" if lengths is None else "int64[3] n, "
    name = "" if lengths is None else "n"
    model = parser.parse_model(f"""
        <ir_version: 3, opset_import: ["": 8]>
        g ({given}float[3,2] a, float[3,3,2] x) => (float[3,2] y, float[3,3,2] z) {{
            y, z = Scan<num_scan_inputs = 1, directions = [{backward}],
                        body = b (float[2] s, float[2] v) => (float[2] t, float[2] o) {{
                            t = Add(s, v) o = Mul(t, v)
                        }}>({name}, a, x)
        }}""")
    rng = np.random.default_rng(0)
    feeds = {
        "a": rng.integers(-9, 9, (3, 2)).astype(np.float32),
        "x": rng.integers(-9, 9, (3, 3, 2)).astype(np.float32),
    }
    if lengths is not None:
        feeds["n"] = np.asarray(lengths, np.int64)
    settings = ort.SessionOptions()
    settings.log_severity_level = 4
    wanted = ort.InferenceSession(model.SerializeToString(), settings, providers=["CPUExecutionProvider"]).run(
        None, feeds
    )
    for got, value in zip(Float64Evaluator(model).run(feeds), wanted, strict=True):
        assert np.array_equal(got, value)
