"""The evaluator itself: types, range, constants, subgraphs, functions, errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper, parser

from tests.unit.adapters.float64.onnx_models import one_node, parse, run_one
from trueport.adapters.float64.onnx import Constant, Float64Evaluator, MissingKernel, Node, registry
from trueport.adapters.float64.onnx import builder as builder_module
from trueport.core.errors import ToolError, UsageError

X = np.array([0.5, -1.0])


def _run(body: str, **feeds: Any) -> list[Any]:
    return Float64Evaluator(parse(body)).run(feeds)


# ---- interface


def test_names_and_types_are_those_of_the_file() -> None:
    model = parse(
        "g (float[2] x, int64[1] n, float[2] w) => (float16[2] h, bool[2] b) <float[2] w = {1, 2}> "
        "{ s = Add(x, w) h = Cast<to = 10>(s) b = Greater(x, s) }"
    )
    evaluator = Float64Evaluator(model)
    assert evaluator.input_names == ("x", "n")
    assert evaluator.input_dtypes == ("float32", "int64")
    assert evaluator.output_names == ("h", "b")
    assert evaluator.output_dtypes == ("float16", "bool")
    assert evaluator.missing == ()


def test_model_is_not_modified() -> None:
    model = parse("g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> { y = Add(x, w) }")
    before = model.SerializeToString()
    Float64Evaluator(model).run({"x": X}, constants={"w": np.zeros(2)})
    assert model.SerializeToString() == before


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int64])
def test_floating_point_feeds_are_promoted(dtype: type) -> None:
    (y,) = _run("g (float[2] x) => (float[2] y) { y = Identity(x) }", x=np.array([1, 2], dtype=dtype))
    assert y.dtype == np.float64
    assert y.tolist() == [1.0, 2.0]


def test_integers_and_booleans_keep_their_type() -> None:
    n = np.array([2**31 - 1], dtype=np.int32)
    (y,) = _run("g (int32[1] n) => (int32[1] y) { y = Add(n, n) }", n=n)
    assert y.dtype == np.int32
    assert y.tolist() == [-2]


@pytest.mark.parametrize(
    ("feeds", "text"),
    [
        ({}, "missing: ['x']"),
        ({"x": X, "z": X}, "unknown: ['z']"),
    ],
)
def test_wrong_feeds_are_refused(feeds: dict[str, Any], text: str) -> None:
    evaluator = Float64Evaluator(parse("g (float[2] x) => (float[2] y) { y = Identity(x) }"))
    with pytest.raises(UsageError, match=text.replace("[", r"\[").replace("]", r"\]")):
        evaluator.run(feeds)


def test_a_float_for_an_integer_is_refused() -> None:
    with pytest.raises(UsageError, match="declared int64"):
        _run("g (int64[2] x) => (int64[2] y) { y = Identity(x) }", x=X)


def test_an_initializer_that_is_an_input_may_be_fed() -> None:
    model = parse("g (float[2] x, float[2] w) => (float[2] y) <float[2] w = {1, 2}> { y = Add(x, w) }")
    evaluator = Float64Evaluator(model)
    assert evaluator.run({"x": X})[0].tolist() == [1.5, 1.0]
    assert evaluator.run({"x": X, "w": np.zeros(2)})[0].tolist() == X.tolist()


def test_outputs_share_no_memory_with_constants_feeds_or_each_other() -> None:
    model = parse(
        "g (float[2] x) => (float[2] a, float[2] b, float[2] c, float[1,2] d) <float[2] w = {1, 2}> "
        "{ a = Identity(x) b = Identity(w) c = Identity(w) "
        "one = Constant<value = int64[1] {0}>() d = Unsqueeze(w, one) }"
    )
    evaluator = Float64Evaluator(model)
    x = X.copy()
    for value in evaluator.run({"x": x}):
        value[...] = 7.0
    assert x.tolist() == X.tolist()
    assert [v.ravel().tolist() for v in evaluator.run({"x": x})[1:]] == [[1.0, 2.0]] * 3


def test_an_output_may_be_an_input_or_an_initializer() -> None:
    model = parse("g (float[2] x) => (float[2] x, float[2] w) <float[2] w = {1, 2}> { y = Identity(x) }")
    x, w = Float64Evaluator(model).run({"x": X})
    assert (x.tolist(), w.tolist()) == (X.tolist(), [1.0, 2.0])


def test_runs_are_independent_of_each_other() -> None:
    evaluator = Float64Evaluator(parse("g (float[2] x) => (float[2] y) { t = Exp(x) u = Neg(t) y = Add(t, u) }"))
    assert [evaluator.run({"x": X})[0].tolist() for _ in range(2)] == [[0.0, 0.0]] * 2


# ---- range of the declared types


@pytest.mark.parametrize(
    ("dtype", "value", "expected"),
    [
        (TensorProto.FLOAT, 3.4028235677973366e38, np.inf),  # the tie between the largest finite and infinity
        (TensorProto.FLOAT, 3.4028235677973362e38, 3.4028235677973362e38),
        (TensorProto.FLOAT, -1e39, -np.inf),
        (TensorProto.FLOAT, 2.0**-150, 0.0),  # the tie between zero and the smallest subnormal
        (TensorProto.FLOAT, np.nextafter(2.0**-150, 1), np.nextafter(2.0**-150, 1)),
        (TensorProto.FLOAT, -1e-60, -0.0),
        (TensorProto.FLOAT16, 65519.9, 65519.9),
        (TensorProto.FLOAT16, 65520.0, np.inf),
        (TensorProto.FLOAT16, 2.0**-25, 0.0),
        (TensorProto.BFLOAT16, 3.4e38, np.inf),
        (TensorProto.BFLOAT16, 3.39e38, 3.39e38),
        (TensorProto.BFLOAT16, 5e-41, 5e-41),
        (TensorProto.DOUBLE, 1e300, 1e300),
        (TensorProto.FLOAT, np.nan, np.nan),
    ],
)
@pytest.mark.parametrize("size", [1, 3, 1000, 100_000])
def test_values_leave_the_range_of_their_declared_type(dtype: int, value: float, expected: float, size: int) -> None:
    x = np.ones(size)
    x[size // 2] = value
    node = helper.make_node("Mul", ["x", "x1"], ["y"])
    infos = [helper.make_tensor_value_info(name, dtype, None) for name in ("x", "x1", "y")]
    graph = helper.make_graph([node], "g", infos[:2], infos[2:])
    evaluator = Float64Evaluator(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)]))
    (y,) = evaluator.run({"x": x, "x1": np.ones(1)})
    want = np.ones(size)
    want[size // 2] = expected
    np.testing.assert_array_equal(y, want)
    np.testing.assert_array_equal(np.signbit(y), np.signbit(want))


def test_range_agrees_with_the_conversion_of_numpy() -> None:
    exponents = np.random.default_rng(0).uniform(-330, 330, 20_000)
    x = np.sign(np.random.default_rng(1).normal(size=exponents.size)) * 2.0**exponents
    (y,) = _run("g (float[N] x) => (float[N] y) <float[1] one = {1}> { y = Mul(x, one) }", x=x)
    with np.errstate(over="ignore", under="ignore"):
        real = x.astype(np.float32)
    np.testing.assert_array_equal(np.isinf(y), np.isinf(real))
    np.testing.assert_array_equal(y == 0, real == 0)
    inside = np.isfinite(real) & (real != 0)
    np.testing.assert_array_equal(y[inside], x[inside])


def test_a_cast_changes_the_range_and_nothing_else() -> None:
    body = "g (float[2] x) => (float[2] y) { h = Cast<to = 10>(x) y = Cast<to = 1>(h) }"
    assert _run(body, x=np.array([1e5, 1.0 + 2.0**-30]))[0].tolist() == [np.inf, 1.0 + 2.0**-30]


def test_a_double_is_not_limited_to_the_range_of_float32() -> None:
    body = "g (float[1] x) => (float[1] y) { d = Cast<to = 11>(x) s = Mul(d, d) r = Sqrt(s) y = Cast<to = 1>(r) }"
    assert _run(body, x=np.array([1e30]))[0].tolist() == [1e30]


def test_types_pass_through_selections_comparisons_and_sequences() -> None:
    body = (
        "g (float16[2] x) => (float16[2] y) { s = SequenceConstruct(x, x) i = Constant<value = int64 {1}>() "
        "a = SequenceAt(s, i) c = Greater(a, x) w = Where(c, x, a) y = Add(w, w) }"
    )
    assert _run(body, x=np.array([60000.0, 1.0]))[0].tolist() == [np.inf, 2.0]


def test_a_fused_operator_is_limited_only_at_its_output() -> None:
    (y,) = run_one("LpNormalization", np.array([1e30, 1e30], dtype=np.float32))
    np.testing.assert_allclose(y, np.sqrt(0.5), rtol=1e-15)
    (z,) = _run("g (float[2] x) => (float[1] z) { s = Mul(x, x) z = ReduceSum<keepdims = 1>(s) }", x=np.full(2, 1e30))
    assert z.tolist() == [np.inf]


# ---- attributes and constants


def test_float_attributes_and_their_defaults_are_float32() -> None:
    x = np.array([-1.0])
    assert run_one("LeakyRelu", x)[0].tolist() == [-float(np.float32(0.01))]
    assert run_one("LeakyRelu", x, alpha=0.3)[0].tolist() == [-float(np.float32(0.3))]


def test_constants_are_listed_in_their_declared_type() -> None:
    model = parse(
        "g (float[2] x) => (float[2] y) <float16[2] h = {1, 2}, int64[1] n = {3}> "
        "{ w = Constant<value = float[2] {0.1, 0.2}>() s = Constant<value_float = 0.3>() "
        "k = Constant<value_ints = [1]>() f = Cast<to = 1>(h) a = Add(x, w) b = Mul(a, s) y = Add(b, f) }"
    )
    constants = Float64Evaluator(model).constants
    assert {key: (c.name, c.dtype) for key, c in constants.items()} == {
        "h": ("h", "float16"), "w": ("w", "float32"), "s": ("s", "float32"),
    }  # fmt: skip
    assert isinstance(constants["w"], Constant)
    assert constants["w"].value.dtype == np.float32
    assert constants["s"].value == np.float32(0.3)


def test_constants_can_be_replaced_for_one_run() -> None:
    model = parse(
        "g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> "
        "{ s = Constant<value_float = 0.5>() a = Add(x, w) y = Mul(a, s) }"
    )
    evaluator = Float64Evaluator(model)
    noisy = evaluator.run({"x": X}, constants={"w": np.array([1.0 + 1e-12, 2.0]), "s": np.array(1.0)})
    assert noisy[0].tolist() == [1.5 + 1e-12, 1.0]
    assert evaluator.run({"x": X})[0].tolist() == [0.75, 0.5]
    with pytest.raises(UsageError, match="no floating-point constant 'q'"):
        evaluator.run({"x": X}, constants={"q": X})
    with pytest.raises(UsageError, match="shape"):
        evaluator.run({"x": X}, constants={"w": np.zeros(1)})


def test_constants_of_subgraphs_and_functions_have_their_own_keys() -> None:
    model = parse(
        "g (float[2] x, bool c) => (float[2] y) { "
        "t = If(c) <then_branch = yes () => (float[2] a) { w = Constant<value_float = 2.0>() a = Mul(x, w) }, "
        "else_branch = no () => (float[2] b) { w = Constant<value_float = 3.0>() b = Mul(x, w) }> y = local.f(t) }",
        functions='<domain: "local", opset_import: ["": 18]> f (v) => (r) '
        "{ w = Constant<value_float = 5.0>() r = Mul(v, w) }",
    )
    evaluator = Float64Evaluator(model)
    assert sorted(evaluator.constants) == ["f:w", "no:w", "yes:w"]
    feeds = {"x": np.ones(2), "c": np.array(True)}
    assert evaluator.run(feeds)[0].tolist() == [10.0, 10.0]
    assert evaluator.run(feeds, constants={"yes:w": np.array(7.0)})[0].tolist() == [35.0, 35.0]


def test_external_data_needs_its_folder_and_stays_inside(tmp_path: Path) -> None:
    (tmp_path / "inside.bin").write_bytes(np.array([1, 2], dtype=np.float32).tobytes())
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "w.bin").write_bytes(np.array([1, 2], dtype=np.float32).tobytes())
    model = parse("g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> { y = Add(x, w) }")
    tensor = model.graph.initializer[0]
    for location, works in {"w.bin": True, "../inside.bin": False, str(tmp_path / "inside.bin"): False}.items():
        del tensor.float_data[:]
        del tensor.external_data[:]
        tensor.data_location = TensorProto.EXTERNAL
        tensor.external_data.add(key="location", value=location)
        with pytest.raises(UsageError, match="base_dir"):
            Float64Evaluator(model)
        if works:
            assert Float64Evaluator(model, base_dir=str(folder)).run({"x": X})[0].tolist() == [1.5, 1.0]
        else:
            with pytest.raises(UsageError, match="outside"):
                Float64Evaluator(model, base_dir=str(folder))


def test_sparse_initializers_are_dense() -> None:
    model = parse("g (float[2] x) => (float[2] y) { y = Add(x, w) }")
    values = numpy_helper.from_array(np.array([5.0], dtype=np.float32), "w")
    indices = numpy_helper.from_array(np.array([1], dtype=np.int64), "i")
    model.graph.sparse_initializer.append(helper.make_sparse_tensor(values, indices, [2]))
    assert Float64Evaluator(model).run({"x": X})[0].tolist() == [0.5, 4.0]


# ---- observation


def test_observe_sees_every_top_level_node_in_order() -> None:
    model = parse(
        "g (float[2] x) => (float[2] y) { w = Constant<value_float = 2.0>() a = Mul(x, w) y, m = Dropout(a) }"
    )
    model.graph.node[1].name = "product"
    model.graph.node[1].metadata_props.add(key="line", value="12")
    seen: list[tuple[Node, list[str], list[Any]]] = []
    Float64Evaluator(model).run({"x": X}, observe=lambda node, names, values: seen.append((node, names, values)))
    assert [node.op_type for node, _, _ in seen] == ["Constant", "Mul", "Dropout"]
    node, names, values = seen[1]
    assert (node.name, node.domain, node.inputs, node.outputs) == ("product", "", ("x", "w"), ("a",))
    assert dict(node.metadata) == {"line": "12"}
    assert names == ["a"]
    assert values[0].tolist() == [1.0, -2.0]
    assert [value.dtype for value in seen[2][2]] == [np.float64, np.bool_]


def test_attributes_of_a_node_are_parsed() -> None:
    model = one_node("Gemm", {"a": np.ones((1, 1)), "b": np.ones((1, 1))}, alpha=0.1, transB=1)
    seen: list[Node] = []
    Float64Evaluator(model).run({"a": np.ones((1, 1)), "b": np.ones((1, 1))}, observe=lambda n, _, __: seen.append(n))
    assert dict(seen[0].attributes) == {"alpha": float(np.float32(0.1)), "transB": 1}


# ---- subgraphs and functions


def test_if_runs_one_branch_with_values_of_the_outer_graph() -> None:
    body = (
        "g (float[2] x, bool c) => (float[2] y) { k = Exp(x) y = If(c) <"
        "then_branch = t () => (float[2] a) { a = Add(x, k) }, "
        "else_branch = e () => (float[2] b) { b = Identity(k) }> }"
    )
    assert _run(body, x=X, c=np.array(True))[0].tolist() == (X + np.exp(X)).tolist()
    assert _run(body, x=X, c=np.array(False))[0].tolist() == np.exp(X).tolist()


LOOP = (
    "g (float[2] x, int64 n) => (float[2] last, float[K,2] all) { k = Neg(x) on = Constant<value = bool {1}>() "
    "last, all = Loop(n, on, x) <body = b (int64 i, bool go, float[2] v) => (bool go, float[2] w, float[2] s) "
    "{ w = Add(v, k) t = Constant<value_float = 2.0>() s = Mul(w, t) }> }"
)


def test_loop_carries_collects_and_sees_the_outer_graph() -> None:
    last, collected = _run(LOOP, x=X, n=np.array(3))
    assert last.tolist() == (X - 3 * X).tolist()
    assert collected.tolist() == [[0.0, 0.0], (-2 * X).tolist(), (-4 * X).tolist()]


def test_loop_of_no_iterations_returns_what_came_in() -> None:
    last, collected = _run(LOOP, x=X, n=np.array(0))
    assert last.tolist() == X.tolist()
    assert collected.shape[0] == 0


def test_a_name_of_two_scopes_out_is_seen() -> None:
    body = (
        "g (float[2] x, bool c) => (float[2] y) { k = Neg(x) y = If(c) <"
        "then_branch = t () => (float[2] a) { a = If(c) <then_branch = u () => (float[2] p) { p = Add(x, k) }, "
        "else_branch = v () => (float[2] q) { q = Identity(k) }> }, "
        "else_branch = e () => (float[2] b) { b = Identity(x) }> }"
    )
    assert _run(body, x=X, c=np.array(True))[0].tolist() == [0.0, 0.0]


def test_scan_runs_forward_and_backward() -> None:
    body = (
        "g (float[2] s, float[3,2] x) => (float[2] last, float[3,2] all) "
        "{ last, all = Scan<num_scan_inputs = 1, scan_input_directions = [1], "
        "body = b (float[2] a, float[2] v) => (float[2] c, float[2] d) { c = Add(a, v) d = Identity(c) }>(s, x) }"
    )
    x = np.arange(6.0).reshape(3, 2)
    last, collected = _run(body, s=np.zeros(2), x=x)
    assert last.tolist() == x.sum(0).tolist()
    assert collected.tolist() == np.cumsum(x[::-1], 0).tolist()


def test_range_is_limited_inside_subgraphs() -> None:
    body = (
        "g (float[2] x, bool c) => (float[2] y) { y = If(c) <then_branch = t () => (float[2] a) "
        "{ s = Mul(x, x) a = Sqrt(s) }, else_branch = e () => (float[2] b) { b = Identity(x) }> }"
    )
    assert _run(body, x=np.full(2, 1e30), c=np.array(True))[0].tolist() == [np.inf, np.inf]


def test_local_functions_are_called_with_attributes_and_omitted_inputs() -> None:
    model = parse(
        "g (float[2] x) => (float[2] y, float[2] z) { y = local.f<slope = 0.25>(x) z = local.f<slope = 4.0>(x, x) }",
        functions='<domain: "local", opset_import: ["": 18]> f <slope> (v, bound) => (r) '
        "{ a = LeakyRelu<alpha: float = @slope>(v) r = Clip(a, bound) }",
    )
    y, z = Float64Evaluator(model).run({"x": X})
    assert y.tolist() == [0.5, -0.25]
    assert z.tolist() == [0.5, -1.0]


def test_a_standard_operator_without_kernel_runs_its_definition() -> None:
    x = np.random.default_rng(0).integers(0, 255, 8).astype(np.float64) / 64
    evaluator = Float64Evaluator(one_node("Swish", {"x": x.astype(np.float32)}, opset=24))
    expected = evaluator.run({"x": x})[0]
    find = registry.find_kernel
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            builder_module, "find_kernel", lambda domain, op_type: None if op_type == "Swish" else find(domain, op_type)
        )
        expanded = Float64Evaluator(one_node("Swish", {"x": x.astype(np.float32)}, opset=24))
    assert expanded.missing == ()
    assert dict(expanded.constants) == {}
    np.testing.assert_allclose(expanded.run({"x": x})[0], expected, rtol=1e-15)


def test_a_definition_that_needs_a_missing_kernel_is_missing_itself() -> None:
    model = one_node("Bernoulli", {"x": X}, opset=18)
    assert Float64Evaluator(model).missing == ("ai.onnx::Bernoulli",)


# ---- what cannot be evaluated


def test_missing_kernels_are_listed_and_raised_where_they_are_reached() -> None:
    model = parse(
        "g (float[2] x, bool c) => (float[2] y) { y = If(c) <"
        "then_branch = t () => (float[2] a) { a = RandomNormalLike(x) }, "
        "else_branch = e () => (float[2] b) { b = Identity(x) }> }"
    )
    evaluator = Float64Evaluator(model)
    assert evaluator.missing == ("ai.onnx::RandomNormalLike",)
    assert evaluator.run({"x": X, "c": np.array(False)})[0].tolist() == X.tolist()
    with pytest.raises(MissingKernel, match=r"ai\.onnx::RandomNormalLike") as caught:
        evaluator.run({"x": X, "c": np.array(True)})
    assert (caught.value.operator, caught.value.node) == ("ai.onnx::RandomNormalLike", "a")
    assert isinstance(caught.value, ToolError)


def test_unknown_domains_are_missing() -> None:
    model = one_node("Strange", {"x": X}, domain="org.example")
    assert Float64Evaluator(model).missing == ("org.example::Strange",)


def test_old_operator_sets_are_missing_where_the_operator_changed() -> None:
    assert Float64Evaluator(one_node("Tile", {"x": X, "n": X, "a": X}, opset=5)).missing == ("ai.onnx::Tile",)
    assert Float64Evaluator(one_node("Add", {"x": X, "z": X}, opset=6)).missing == ()
    assert Float64Evaluator(one_node("Exp", {"x": X}, opset=6)).missing == ()


def test_operands_that_do_not_fit_name_the_node() -> None:
    with pytest.raises(ToolError, match=r"node 'y' \(ai.onnx::Add\)"):
        _run("g (float[N] x, float[M] z) => (float[K] y) { y = Add(x, z) }", x=np.ones(2), z=np.ones(3))


def test_a_name_that_nothing_defines_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="'nothing'"):
        Float64Evaluator(parse("g (float[2] x) => (float[2] y) { y = Add(x, nothing) }"))


def test_recursive_functions_are_refused() -> None:
    model = parse(
        "g (float[2] x) => (float[2] y) { y = local.f(x) }",
        functions='<domain: "local", opset_import: ["": 18, "local": 1]> f (v) => (r) { r = local.f(v) }',
    )
    with pytest.raises(UsageError, match="nested"):
        Float64Evaluator(model)


def test_a_graph_inside_an_operator_that_is_defined_by_others_sees_what_is_around_it():
    bias = np.asarray(0.5, np.float32)
    body = helper.make_graph(
        [helper.make_node("Add", ["score", "outer"], ["moved"])], "mod",
        [helper.make_tensor_value_info("score", 1, None)], [helper.make_tensor_value_info("moved", 1, None)],
    )  # fmt: skip
    nodes = [
        helper.make_node("Identity", ["bias"], ["outer"]),
        helper.make_node("FlexAttention", ["q", "k", "v"], ["y"], domain="ai.onnx.preview", score_mod=body),
    ]
    infos = [helper.make_tensor_value_info(name, 1, [1, 1, 3, 2]) for name in "qkv"]
    graph = helper.make_graph(
        nodes, "g", infos, [helper.make_tensor_value_info("y", 1, None)], [numpy_helper.from_array(bias, "bias")]
    )
    imports = [helper.make_opsetid("", 26), helper.make_opsetid("ai.onnx.preview", 1)]
    evaluator = Float64Evaluator(helper.make_model(graph, opset_imports=imports, ir_version=12))
    assert not evaluator.missing
    q, k, v = np.random.default_rng(0).standard_normal((3, 1, 1, 3, 2)).astype(np.float32)
    (y,) = evaluator.run({"q": q, "k": k, "v": v})
    scores = np.exp((q.astype(float) @ np.swapaxes(k, 2, 3).astype(float)) / np.sqrt(2) + 0.5)
    np.testing.assert_allclose(y, scores / scores.sum(-1, keepdims=True) @ v.astype(float), rtol=1e-6)


def test_parts_of_a_sequence_that_do_not_add_up_are_refused():
    model = parser.parse_model(
        '<ir_version: 9, opset_import: ["": 20]> g (float[4] x, int64[2] s) => (seq(float[n]) y) '
        "{ y = SplitToSequence(x, s) }"
    )
    with pytest.raises(ToolError, match="of size 4"):
        Float64Evaluator(model).run({"x": np.ones(4), "s": np.asarray([1, 2])})
