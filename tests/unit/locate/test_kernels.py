"""Which kernel is wrong: one that introduces an error, those that pass it on, and right ones that are left alone."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper, parser

from trueport.adapters.protocols import Runtime
from trueport.adapters.runtimes import runtime
from trueport.adapters.runtimes.observed import Observation
from trueport.adapters.runtimes.onnxruntime import OnnxRuntime, OnnxRuntimeSession
from trueport.core.taxonomy import Role
from trueport.locate.kernels import KernelJudgement, judge_kernels

HEAD = '<ir_version: 9, opset_import: ["": 18]> g '
RNG = np.random.default_rng(7)


class Planted(OnnxRuntime):
    """ONNX Runtime with other operators in place of some nodes, by their first output."""

    def __init__(self, **swapped: str) -> None:
        super().__init__()
        self.swapped = swapped
        self.loaded = 0

    def load(self, path: Path, *, level: str | None = None) -> OnnxRuntimeSession:
        self.loaded += 1
        model = onnx.load(str(path))
        for node in model.graph.node:
            if node.output[0] in self.swapped:
                node.op_type = self.swapped[node.output[0]]
        other = path.parent / "swapped.onnx"
        onnx.save(model, str(other))
        return super().load(other, level=level)


def look(
    model: onnx.ModelProto | str, feeds: Mapping[str, Any], folder: Path, by: Runtime | None = None, **options: Any
) -> tuple[Observation, KernelJudgement]:
    if isinstance(model, str):
        model = parser.parse_model(HEAD + model)
    path = folder / "model.onnx"
    onnx.save(model, str(path))
    observation = Observation(model, path, feeds, by or runtime("onnxruntime"), **options)
    return observation, judge_kernels(observation.steps())


CHAIN = """(float[4,8] x) => (float[4,8] y) {
    a = Sin (x)
    b = Exp (a)
    c = Add (b, x)
    side = Tanh (x)
    d = Mul (c, side)
    y = Softmax <axis = -1> (d)
}"""
X = {"x": RNG.standard_normal((4, 8)).astype(np.float32)}


def test_right_kernels_are_left_alone(tmp_path: Path) -> None:
    observation, found = look(CHAIN, X, tmp_path)
    assert found.nodes == ()
    assert found.judged == 6
    assert observation.unchanged


def test_the_wrong_kernel_is_named_and_those_behind_it_only_propagate(tmp_path: Path) -> None:
    observation, found = look(CHAIN, X, tmp_path, Planted(a="Cos"))
    assert [(n.output, n.operator, n.role) for n in found.nodes] == [
        ("a", "Sin", Role.INTRODUCES), ("b", "Exp", Role.PROPAGATES), ("c", "Add", Role.PROPAGATES),
        ("d", "Mul", Role.PROPAGATES), ("y", "Softmax", Role.PROPAGATES),
    ]  # fmt: skip
    worst = found.nodes[0].comparison
    x = float(X["x"][worst.index])
    assert worst.reference == pytest.approx(np.sin(x))
    assert worst.candidate == pytest.approx(np.cos(x), rel=1e-6)
    assert observation.unchanged


def test_two_wrong_kernels_are_both_found_the_worst_first(tmp_path: Path) -> None:
    _, found = look(CHAIN, X, tmp_path, Planted(side="Sigmoid", c="Sub"))
    assert {n.output for n in found.introduced} == {"side", "c"}
    assert [n.score for n in found.introduced] == sorted((n.score for n in found.introduced), reverse=True)


def test_one_session_shows_everything_and_a_limit_makes_several(tmp_path: Path) -> None:
    by = Planted(c="Sub")
    one, found = look(CHAIN, X, tmp_path, by)
    assert (one.sessions, by.loaded) == (1, 2)
    several, same = look(CHAIN, X, tmp_path, by, limit_bytes=2 * 4 * 8 * 8)
    assert several.sessions == 3
    assert [(n.output, n.score) for n in found.nodes] == [(n.output, n.score) for n in same.nodes]


def test_branches_and_loops_are_judged_as_one_node(tmp_path: Path) -> None:
    text = """(float[3] x, bool c) => (float[3] y) <int64 n = {5}, bool go = {1}> {
        first = Exp (x)
        chosen = If (c) <then_branch = t () => (float[3] p) { p = Log (first) },
                         else_branch = e () => (float[3] q) { q = Neg (first) }>
        looped = Loop (n, go, chosen) <body = b (int64 i, bool k, float[3] s) => (bool m, float[3] r) {
            m = Identity (k)
            w = Sin (s)
            r = Add (w, x)
        }>
        y = Exp (looped)
    }"""
    feeds = {"x": np.array([0.3, -1.2, 2.0], np.float32), "c": np.array(True)}
    _, found = look(text, feeds, tmp_path)
    assert found.nodes == ()
    assert found.judged == 4
    _, found = look(text, feeds, tmp_path, Planted(first="Neg"))
    assert [n.output for n in found.nodes] == ["first", "chosen", "looped", "y"]
    assert [n.output for n in found.introduced] == ["first"]


@pytest.mark.parametrize("kind", ["float16", "double"])
def test_other_precisions(kind: str, tmp_path: Path) -> None:
    text = CHAIN.replace("float[", f"{kind}[")
    feeds = {"x": X["x"].astype(np.float16 if kind == "float16" else np.float64)}
    assert look(text, feeds, tmp_path)[1].nodes == ()
    assert [n.output for n in look(text, feeds, tmp_path, Planted(b="Abs"))[1].introduced] == ["b"]


def test_half_precision_at_the_edge_of_its_range(tmp_path: Path) -> None:
    text = "(float16[1,64] x, float16[64,1] w) => (float16[1,1] y) { p = MatMul (x, w) \n y = Relu (p) }"
    feeds = {"x": np.full((1, 64), 32.0, np.float16), "w": np.full((64, 1), 32.0, np.float16)}
    assert look(text, feeds, tmp_path)[1].nodes == ()  # 65536 is infinite in half precision


def test_values_without_elements(tmp_path: Path) -> None:
    text = "(float[0,3] x) => (float[1,3] y, float[0,3] z) <int64[1] a = {0}> { z = Exp (x) \n y = ReduceSum (z, a) }"
    observation, found = look(text, {"x": np.zeros((0, 3), np.float32)}, tmp_path)
    assert (found.nodes, found.judged, observation.unchanged) == ((), 2, True)


def test_a_graph_without_nodes(tmp_path: Path) -> None:
    observation, found = look("(float[2] x) => (float[2] x) { }", {"x": np.ones(2, np.float32)}, tmp_path)
    assert (found.judged, observation.unchanged) == (0, True)


def test_random_numbers_are_not_judged(tmp_path: Path) -> None:
    text = "(float[2] x) => (float[2] y) { r = RandomNormalLike (x) \n y = Add (x, r) }"
    _, found = look(text, {"x": np.ones(2, np.float32)}, tmp_path, limit_bytes=1)
    assert found.nodes == ()
    assert found.unjudged == {"r": "draws random numbers"}


def test_a_node_without_float64_kernel_does_not_end_the_search(tmp_path: Path) -> None:
    text = """(float[4] x) => (float[4] y, float[2,2] s) <float[2,2] a = {1, 2, 3, 4}> {
        s = com.microsoft.Inverse (a)
        y = Sin (x)
    }"""
    model = parser.parse_model(HEAD.replace('"": 18', '"": 18, "com.microsoft": 1') + text)
    _, found = look(model, {"x": np.ones(4, np.float32)}, tmp_path, Planted(y="Cos"))
    assert [n.output for n in found.introduced] == ["y"]
    assert list(found.unjudged) == ["s"]


def test_external_weights(tmp_path: Path) -> None:
    weight = numpy_helper.from_array(RNG.standard_normal((8, 8)).astype(np.float32), "w")
    model = parser.parse_model(HEAD + "(float[4,8] x) => (float[4,8] y) { p = MatMul (x, w) \n y = Sin (p) }")
    model.graph.initializer.append(weight)
    path = tmp_path / "model.onnx"
    stored = onnx.ModelProto.FromString(model.SerializeToString())
    onnx.save(stored, str(path), save_as_external_data=True, location="w.bin", size_threshold=0)
    found = judge_kernels(Observation(model, path, X, runtime("onnxruntime")).steps())
    assert (found.nodes, found.judged) == ((), 2)


def test_a_thousand_nodes_take_seconds(tmp_path: Path) -> None:
    operators = ("Sin", "Tanh", "Exp", "Neg", "Sigmoid")
    nodes = [helper.make_node(operators[i % 5], [f"v{i}"], [f"v{i + 1}"]) for i in range(1000)]
    infos = [helper.make_tensor_value_info(n, 1, [4, 8]) for n in ("v0", "v1000")]
    graph = helper.make_graph(nodes, "long", infos[:1], infos[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    started = time.perf_counter()
    _, found = look(model, {"v0": X["x"]}, tmp_path, Planted(v501="Cos"))
    assert time.perf_counter() - started < 30
    assert [n.output for n in found.introduced] == ["v501"]
    assert found.judged == 1000


def test_a_fault_that_is_there_with_every_transformer_off_is_a_kernels(tmp_path: Path) -> None:
    """ONNX Runtime 1.32 ignores the size that MaxUnpool is given; the standard has this case."""
    text = """(float[1,1,2,2] x, int64[1,1,2,2] i) => (float[1,1,5,5] y) <int64[4] size = {1, 1, 5, 5}> {
        p = Abs (x)
        m = MaxUnpool <kernel_shape = [2, 2], strides = [2, 2]> (p, i, size)
        y = Neg (m)
    }"""
    feeds = {
        "x": np.array([5, 6, 7, 8], np.float32).reshape(1, 1, 2, 2),
        "i": np.array([5, 7, 13, 15]).reshape(1, 1, 2, 2),
    }
    observation, found = look(text, feeds, tmp_path)
    parts = OnnxRuntime().switches(tmp_path / "model.onnx")
    run = parts.run(frozenset(parts.names)).run
    assert run is not None
    assert np.array_equal(run(feeds)[0], observation.plain[0])
    assert observation.unchanged
    assert [(n.operator, n.role) for n in found.nodes] == [
        ("MaxUnpool", Role.INTRODUCES), ("Neg", Role.PROPAGATES),
    ]  # fmt: skip


def test_half_precision_that_was_not_rounded_between_two_nodes_is_no_fault(tmp_path: Path) -> None:
    """Where terms cancel, what is seen of an operand is not what the runtime added."""
    text = "(float16[200] x) => (float16[200] y) { e = Exp (x) \n n = Log (e) \n y = Sub (n, x) }"
    feeds = {"x": RNG.uniform(1, 5, 200).astype(np.float16)}
    assert look(text, feeds, tmp_path)[1].nodes == ()


@pytest.mark.parametrize("operator", ["AveragePool", "MaxPool"])
def test_means_that_cancel_have_the_noise_of_their_terms(operator: str, tmp_path: Path) -> None:
    kernel = "<kernel_shape = [3, 3], strides = [1, 1]>"
    text = f"(float[1,2,40,40] x) => (float[1,2,38,38] y) {{ y = {operator} {kernel} (x) }}"
    feeds = {"x": RNG.standard_normal((1, 2, 40, 40)).astype(np.float32)}
    assert look(text, feeds, tmp_path)[1].nodes == ()
    other = {"AveragePool": "MaxPool", "MaxPool": "AveragePool"}[operator]
    assert [n.operator for n in look(text, feeds, tmp_path, Planted(y=other))[1].introduced] == [operator]


def test_ties_of_a_quantization_may_fall_on_either_side_but_a_wrong_one_may_not(tmp_path: Path) -> None:
    text = "(float[6] x) => (uint8[6] y, float s, uint8 z) { y, s, z = DynamicQuantizeLinear (x) }"
    feeds = {"x": np.array([0, 2, -3, -2.5, 1.34, 0.5], np.float32)}
    assert look(text, feeds, tmp_path)[1].nodes == ()
    text = "(float[3] x) => (float[3] y) { y = Floor (x) }"
    feeds = {"x": np.array([2.0, 0.5, 3.0], np.float32)}
    assert [n.operator for n in look(text, feeds, tmp_path, Planted(y="Ceil"))[1].introduced] == ["Floor"]


def test_a_function_of_the_model_is_judged_as_one_node(tmp_path: Path) -> None:
    text = """<ir_version: 9, opset_import: ["": 18, "local": 1]> g (float[8] x) => (float[8] y) {
        a = Exp (x)
        b = local.shifted (a)
        y = Sin (b)
    }
    <domain: "local", opset_import: ["": 18]> shifted (v) => (r) {
        s = Log (v)
        m = ReduceMean (s)
        r = Sub (s, m)
    }"""
    feeds = {"x": X["x"][0]}
    _, found = look(parser.parse_model(text), feeds, tmp_path)
    assert (found.nodes, found.judged) == ((), 3)
    _, found = look(parser.parse_model(text), feeds, tmp_path, Planted(y="Cos"))
    assert [n.output for n in found.introduced] == ["y"]
