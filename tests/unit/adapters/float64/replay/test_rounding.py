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
