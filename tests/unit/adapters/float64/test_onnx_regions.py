"""Pooling of regions against ONNX Runtime, and counts below zero."""

from __future__ import annotations

import numpy as np
import onnxruntime as ort
import pytest

from tests.unit.adapters.float64.onnx_models import one_node, run_one
from trueport.adapters.float64.onnx import Float64Evaluator
from trueport.core.errors import ToolError


@pytest.mark.parametrize("scale", [1.0, 0.5])
@pytest.mark.parametrize("shape", [[2, 2], [3, 1]])
def test_the_largest_of_each_cell(scale, shape):
    x = np.random.default_rng(0).standard_normal((2, 3, 7, 9)).astype(np.float32)
    rois = [
        [0, 0, 0, 4, 4],
        [1, 2, 1, 8, 6],
        [1, 3, 3, 3, 3],
        [0, 5, 5, 2, 2],
        [1, -4, -3, 30, 30],
        [0, 20, 20, 25, 25],
    ]
    feeds = {"x": x, "rois": np.asarray(rois, np.float32)}
    model = one_node("MaxRoiPool", feeds, pooled_shape=shape, spatial_scale=scale)
    model.graph.output[0].type.tensor_type.elem_type = 1
    settings = ort.SessionOptions()
    settings.log_severity_level = 4
    session = ort.InferenceSession(model.SerializeToString(), settings, providers=["CPUExecutionProvider"])
    assert np.array_equal(session.run(None, feeds)[0], Float64Evaluator(model).run(feeds)[0])


def test_a_depth_below_zero_is_refused():
    with pytest.raises(ToolError, match="depth"):
        run_one("OneHot", np.asarray([0]), np.asarray(-1), np.asarray([0.0, 1.0]), axis=-1)


def test_fewer_than_no_elements_are_refused():
    with pytest.raises(ToolError, match="the -1 largest"):
        run_one("TopK", np.asarray([1.0, 2.0]), np.asarray([-1]), outputs=2, axis=0)
