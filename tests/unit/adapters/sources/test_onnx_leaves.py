"""The inputs of an ONNX subject as leaves: one per tensor, with domain and dynamic axes, and back into feeds."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import parser

from trueport.adapters.sources.onnx_file import subject_of_onnx
from trueport.adapters.sources.onnx_leaves import onnx_axes, onnx_given, onnx_leaves
from trueport.adapters.sources.registry import SourceRequest
from trueport.core.errors import UsageError
from trueport.core.options import DynamicAxis
from trueport.inputs import draw_inputs
from trueport.onnxgraph.interface import read_interface

GATHER = "(float[N, 3] t, int64[M] i) => (float[M, 3] y) { y = Gather(t, i) }"


def _subject(body, feeds=None):
    model = parser.parse_model(f'<ir_version: 8, opset_import: ["": 18]> g {body}')
    return subject_of_onnx(model, feeds, name="m", sha256="", request=SourceRequest("m", False, None, {}, 0))


def test_symbols_are_dynamic_axes_and_unnamed_ones_vary_alone():
    axes = onnx_axes(_subject("(float[N, 3] a, float[?, N] b) => (float[N, 3] y) { y = Relu(a) }"))
    assert [(a.input, a.axis, a.symbol) for a in axes] == [("a", 0, "N"), ("b", 0, "b:0"), ("b", 1, "N")]


def test_every_drawn_index_lies_in_the_table_of_its_set():
    leaves = onnx_leaves(_subject(GATHER))
    for item in draw_inputs(leaves, samples=4, seed=0):
        table, index = item.arrays
        assert 0 <= index.min() <= index.max() < len(table), item.label


@pytest.mark.parametrize("symbol", ["rows", "N"])
def test_a_requested_axis_replaces_the_declared_ones(symbol):
    leaves = onnx_leaves(_subject(GATHER), [DynamicAxis("t", 0, symbol)])
    assert [a.symbol for leaf in leaves for a in leaf.axes.values()] == [symbol]
    for item in draw_inputs(leaves, samples=4, seed=0):
        assert item.arrays[1].max() < len(item.arrays[0]), item.label


def test_an_axis_that_no_longer_varies_bounds_by_its_size():
    leaves = onnx_leaves(_subject(GATHER), [DynamicAxis("i", 0, "M")])
    assert leaves[1].domain.bounds({}) == (0, len(leaves[0].example) - 1)


@pytest.mark.parametrize(
    ("axis", "message"),
    [
        (DynamicAxis("q", 0, "n"), "no tensor input is called 'q'"),
        (DynamicAxis("t", 5, "n"), "has no axis 5"),
        (DynamicAxis("t", 1, "n"), "declares the size 3"),
    ],
)
def test_requests_that_cannot_be(axis, message):
    with pytest.raises(UsageError, match=message):
        onnx_leaves(_subject(GATHER), [axis])


def test_sequences_are_leaves_and_come_back_as_lists():
    body = "(seq(float[2]) s, float[2] x, optional(float[2]) o) => (float[2] y) { y = Relu(x) }"
    values = {"s": [np.ones(2, np.float32)] * 3, "x": np.zeros(2, np.float32), "o": None}
    subject = _subject(body, values)
    leaves = onnx_leaves(subject)
    assert [leaf.name for leaf in leaves] == ["s.0", "s.1", "s.2", "x"]
    told = read_interface(subject.model)
    feeds = told.feeds(told.pair([leaf.name for leaf in leaves], {}), [leaf.example for leaf in leaves])
    assert [len(feeds["s"]), feeds["o"], feeds["x"].tolist()] == [3, None, [0, 0]]


def test_further_examples_have_the_form_of_the_first():
    body = "(seq(float[2]) s) => (seq(float[2]) y) { y = Identity(s) }"
    sets = [{"s": [np.full(2, i, np.float32)] * count} for i, count in enumerate((2, 2, 3))]
    (given,) = onnx_given(_subject(body, sets))
    assert [v.tolist() for v in given] == [[1, 1], [1, 1]]
