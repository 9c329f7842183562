"""The noise of an operator is that of its type: nothing where it is exact, more where it sums."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import parser

from trueport.adapters.float64.onnx import Float64Evaluator
from trueport.adapters.float64.onnx.dialect import ONNX
from trueport.adapters.float64.replay.rounding import Budget, noisy_runs
from trueport.adapters.float64.replay.source import Replay
from trueport.oracle.noise import ALARM

U = 2.0**-24
RNG = np.random.default_rng(0)


def floor(text, dtype="float32", **feeds):
    model = parser.parse_model(f'<ir_version: 10, opset_import: ["": 21]> g {text}')
    made = Replay(Float64Evaluator(model), ONNX, 0).reference(feeds, 0, ALARM)
    assert made.outputs[0].dtype == dtype
    return made.outputs[0]


def test_what_is_exact_makes_no_noise():
    x = np.asarray([1.0, -3.0, 8.0], np.float32)
    output = floor("(float[3] x) => (float[3] y) { c = Constant<value_float = 4.0>() z = Mul(x, c) y = Relu(z) }", x=x)
    assert (output.arithmetic_floor == 0).all()


THIRD = float(np.float32(1 / 3))
"""Four times this is a number of single precision, three times it is none."""


@pytest.mark.parametrize(
    ("text", "feeds"),
    [
        ("(float[4] x) => (float y) { y = ReduceSum<keepdims = 0>(x) }", {"x": [THIRD] * 4}),
        ("(float[1,4] x, float[4,1] w) => (float[1,1] y) { y = MatMul(x, w) }", {"x": [[THIRD] * 4], "w": [[1.0]] * 4}),
        ("(float[1] x) => (float[1] y) { y = Sum(x, x, x, x) }", {"x": [THIRD]}),
    ],
)
def test_a_sum_whose_result_is_exact_may_round_on_its_way(text, feeds):
    values = {name: np.asarray(value, np.float32) for name, value in feeds.items()}
    output = floor(text, **values)
    assert (np.float32(output.value) == output.value).all()
    assert output.arithmetic_floor.max() > U / 4


@pytest.mark.parametrize(
    ("text", "feeds"),
    [
        ("(float[64] x) => (float y) { y = ReduceSum<keepdims = 0>(x) }", {"x": np.arange(64.0)}),
        ("(float[2,64] x, float[64,1] w) => (float[2,1] y) { y = MatMul(x, w) }",
         {"x": np.eye(2, 64), "w": RNG.standard_normal((64, 1))}),
        ("(float[64] x) => (float[64] y) <int64 a = {0}> { y = CumSum(x, a) }", {"x": np.full(64, 2.0**-9)}),
        ("(float[1] x) => (float[1] y) { y = Sum(x, x, x, x) }", {"x": [0.25]}),
        ("(float[2,2] x, float[2,2] w, float[2] c) => (float[2,2] y) { y = Gemm(x, w, c) }",
         {"x": [[1, 2], [3, 4]], "w": [[5, 6], [7, 8]], "c": [0.5, 1.5]}),
    ],
)  # fmt: skip
def test_a_sum_that_can_round_nowhere_makes_no_noise(text, feeds):
    output = floor(text, **{name: np.asarray(value, np.float32) for name, value in feeds.items()})
    assert (output.arithmetic_floor == 0).all()


def test_a_rounded_product_is_off_by_about_a_last_place():
    x = RNG.standard_normal(200).astype(np.float32)
    output = floor("(float[200] x) => (float[200] y) { y = Mul(x, x) }", x=x)
    ratio = output.arithmetic_floor / (np.abs(output.value) * U)
    assert 0.4 < np.median(ratio) < 2
    assert (output.meaning_floor < 1e-13 * np.abs(output.value)).all()


def test_an_operator_of_double_precision_has_the_noise_of_doubles():
    x = RNG.standard_normal(50)
    output = floor("(double[50] x) => (double[50] y) { y = Exp(x) }", dtype="float64", x=x)
    assert (output.arithmetic_floor < 1e-14 * np.abs(output.value)).all()
    assert (output.arithmetic_floor > 0).all()


@pytest.mark.parametrize("size", [10, 10_000])
def test_a_sum_of_equal_terms_is_off_in_proportion_to_their_number(size):
    x = np.full((1, size), 0.1, np.float32)
    axes = "<int64[1] a = {1}>"
    output = floor(f"(float[1,{size}] x) => (float[1,1] y) {axes} {{ y = ReduceSum(x, a) }}", x=x)
    relative = float((output.arithmetic_floor / np.abs(output.value)).max())
    assert relative == pytest.approx(U * size / 2, rel=3)


def test_a_running_sum_counts_its_terms():
    x = np.full(1000, 0.1, np.float32)
    output = floor("(float[1000] x) => (float[1000] y) <int64 a = {0}> { y = CumSum(x, a) }", x=x)
    relative = output.arithmetic_floor / np.abs(output.value)
    assert relative[900:].mean() > 5 * relative[50:100].mean()


def test_a_logarithm_of_almost_one_has_an_absolute_error():
    x = np.asarray([[100.0, 0.0, 0.0]], np.float32)
    output = floor("(float[1,3] x) => (float[1,3] y) { y = LogSoftmax<axis = 1>(x) }", x=x)
    assert output.value[0, 0] == pytest.approx(-2 * np.exp(-100.0), rel=1e-6)
    assert output.arithmetic_floor[0, 0] > U / 4


def test_a_mask_of_the_largest_number_stays_itself():
    x = np.asarray([0.5, 0.25], np.float32)
    mask = np.asarray([-3.4e38, 0.0], np.float32)
    output = floor("(float[2] x, float[2] m) => (float[2] y) { y = Add(x, m) }", x=x, m=mask)
    assert output.arithmetic_floor[0] < 1


def test_a_budget_widens_one_operator():
    model = parser.parse_model(
        '<ir_version: 9, opset_import: ["": 20]> g (float[64] x) => (float[64] y) { y = Tanh(x) }'
    )
    evaluator = Float64Evaluator(model)
    feeds = {"x": RNG.standard_normal(64).astype(np.float32)}
    main = evaluator.run(feeds)[0]

    def spread(budgets):
        runs = noisy_runs(
            lambda rounding, _: evaluator.run(feeds, follow=rounding),
            ONNX,
            draws=8,
            seed=[0],
            wide=False,
            budgets=budgets,
        )
        return float(np.mean([np.abs(run[0] - main) for run in runs]))

    assert spread({"Tanh": Budget(places=16)}) > 8 * spread({})


def test_noise_depends_on_seed_and_number_only():
    x = RNG.standard_normal(20).astype(np.float32)
    first = floor("(float[20] x) => (float[20] y) { y = Sin(x) }", x=x)
    second = floor("(float[20] x) => (float[20] y) { y = Sin(x) }", x=x)
    assert np.array_equal(first.arithmetic_floor, second.arithmetic_floor)


# ---------------------------------------------------------------------- sums against sums in single precision


def _shuffled_errors(products, total, rng):
    """The root mean square error of float32 sums of rounded products in random orders; terms along the last axis."""
    terms = products.astype(np.float32)
    sums = [np.cumsum(rng.permuted(terms, axis=-1), axis=-1, dtype=np.float32)[..., -1] for _ in range(50)]
    return np.sqrt(np.mean([np.square(s.astype(np.float64) - total) for s in sums], axis=0))


def test_an_average_over_windows_that_overlap_has_the_noise_of_its_terms():
    x = RNG.standard_normal((1, 1, 40)).astype(np.float32)
    output = floor("(float[1,1,40] x) => (float[1,1,32] y) { y = AveragePool<kernel_shape = [9]>(x) }", x=x)
    windows = np.lib.stride_tricks.sliding_window_view(x[0, 0].astype(np.float64), 9) / 9
    wanted = _shuffled_errors(windows, output.value[0, 0], np.random.default_rng(1))
    ratio = output.arithmetic_floor[0, 0] / wanted
    assert 0.5 < np.median(ratio) < 3
    assert ratio.min() > 0.3


def test_columns_that_are_added_into_an_image_have_the_noise_of_a_sum():
    x = RNG.standard_normal((1, 25, 36)).astype(np.float32)
    output = floor(
        "(float[1,25,36] x) => (float[1,1,10,10] y) <int64[2] i = {10, 10}, int64[2] b = {5, 5}>"
        " { y = Col2Im(x, i, b) }",
        x=x,
    )
    inner = output.arithmetic_floor[0, 0, 4:6, 4:6]
    assert (inner > 3 * U).all()
    assert (inner < 30 * U).all()


@pytest.mark.parametrize("operator", ["ScatterElements", "ScatterND"])
def test_many_updates_of_one_element_have_the_noise_of_a_sum(operator):
    half = RNG.standard_normal(32)
    updates = np.concatenate([half, 1e-3 - half]).astype(np.float32)
    where = "int64[64]" if operator == "ScatterElements" else "int64[64,1]"
    zeros = ", ".join("0" for _ in range(64))
    text = f'<float[2] x = {{0, 1}}, {where} i = {{{zeros}}}> {{ y = {operator}<reduction = "add">(x, i, u) }}'
    output = floor(f"(float[64] u) => (float[2] y) {text}", u=updates)
    wanted = _shuffled_errors(updates.astype(np.float64)[None], output.value[:1], np.random.default_rng(1))
    assert 0.3 < output.arithmetic_floor[0] / wanted[0] < 3
    assert output.arithmetic_floor[1] <= 2 * U


@pytest.mark.parametrize("text", ["y = ReduceProd<keepdims = 0>(x)", "c = CumProd(x, a) y = Slice(c, s, e)"])
def test_a_product_of_many_factors_is_rounded_as_often(text):
    x = RNG.uniform(0.9, 1.1, 200).astype(np.float32)
    model = parser.parse_model(
        f'<ir_version: 10, opset_import: ["": 26]> g (float[200] x) => (float[] y) '
        f"<int64 a = {{0}}, int64[1] s = {{199}}, int64[1] e = {{200}}> {{ {text} }}"
    )
    output = Replay(Float64Evaluator(model), ONNX, 0).reference({"x": x}, 0, ALARM).outputs[0]
    relative = float((output.arithmetic_floor / np.abs(output.value)).max())
    assert U * np.sqrt(200) / 4 < relative < U * 200


def test_a_transform_that_vanishes_is_only_as_good_as_its_factors():
    x = RNG.standard_normal((1, 16, 1)).astype(np.float32)
    output = floor("(float[1,16,1] x) => (float[1,16,2] y) { y = DFT(x) }", x=x)
    size = float(np.sqrt(np.square(x.astype(np.float64)).sum()))
    assert output.value[0, 8, 1] == 0
    assert (output.arithmetic_floor > U * size / 2).all()
    assert (output.arithmetic_floor < 20 * U * size).all()


def test_a_transform_of_frames_has_the_noise_of_each_frame():
    x = np.concatenate([RNG.standard_normal(32), 1000 * RNG.standard_normal(32)]).astype(np.float32)[None]
    text = "<int64 s = {32}, float[32] w = {" + ", ".join(["0.5"] * 32) + "}> { y = STFT(x, s, w) }"
    output = floor(f"(float[1,64] x) => (float[1,2,17,2] y) {text}", x=x)
    first, second = output.arithmetic_floor[0, 0], output.arithmetic_floor[0, 1]
    assert output.value[0, 0, 16, 1] == 0
    assert first.min() > U
    assert first.max() < 50 * U
    assert 100 < second.min() / first.min() < 10_000


def test_a_causal_convolution_has_the_noise_of_a_sum():
    x, w = RNG.standard_normal((1, 2, 64)).astype(np.float32), RNG.standard_normal((2, 1, 4)).astype(np.float32)
    model = parser.parse_model(
        '<ir_version: 13, opset_import: ["": 27]> g (float[1,2,64] x, float[2,1,4] w) => (float[1,2,64] y) '
        "{ y, s = CausalConvWithState(x, w) }"
    )
    output = Replay(Float64Evaluator(model), ONNX, 0).reference({"x": x, "w": w}, 0, ALARM).outputs[0]
    padded = np.concatenate([np.zeros((2, 3)), x[0]], 1).astype(np.float64)
    products = np.lib.stride_tricks.sliding_window_view(padded, 4, 1) * w.astype(np.float64)
    wanted = _shuffled_errors(products, products.sum(-1), np.random.default_rng(1))
    ratio = output.arithmetic_floor[0] / np.maximum(wanted, 1e-12)
    assert ratio[wanted > 0].min() > 0.5
    assert np.median(ratio[wanted > 0]) < 30


@pytest.mark.parametrize("operator", ["HannWindow", "HammingWindow", "BlackmanWindow"])
def test_a_window_is_as_good_as_the_cosines_of_which_it_is_the_difference(operator):
    size = np.asarray(16, np.int64)
    output = floor(f"(int64 n) => (float[16] y) {{ y = {operator}<periodic = 0>(n) }}", n=size)
    assert (output.arithmetic_floor > U / 2).all()
    assert (output.arithmetic_floor < 10 * U).all()
