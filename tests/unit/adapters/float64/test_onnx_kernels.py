"""Kernels where their node tests do not reach: convolution without PyTorch, pooling sizes, old operator sets."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.unit.adapters.float64.onnx_models import parse, run_one
from trueport.adapters.float64.onnx import Float64Evaluator, MissingKernel
from trueport.adapters.float64.onnx.kernels import pytorch
from trueport.core.errors import ToolError

RNG = np.random.default_rng(0)


def _f32(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape).astype(np.float32)


# ---- convolution


CONVOLUTIONS: list[tuple[str, tuple[np.ndarray, ...], dict[str, Any]]] = [
    ("Conv", (_f32(2, 4, 9, 11), _f32(6, 2, 3, 3), _f32(6)), {"group": 2, "strides": [2, 3], "pads": [1, 0, 2, 1]}),
    ("Conv", (_f32(1, 3, 8), _f32(3, 1, 3)), {"group": 3, "dilations": [2], "auto_pad": "SAME_UPPER"}),
    ("Conv", (_f32(1, 2, 5, 6, 7), _f32(3, 2, 2, 3, 2)), {"auto_pad": "SAME_LOWER", "strides": [2, 2, 2]}),
    ("Conv", (_f32(1, 2, 5, 5), _f32(3, 2, 2, 2)), {"auto_pad": "VALID", "strides": [2, 2]}),
    (
        "ConvTranspose",
        (_f32(2, 4, 5, 6), _f32(4, 3, 3, 2), _f32(6)),
        {"group": 2, "strides": [2, 3], "pads": [1, 0, 0, 1]},
    ),
    ("ConvTranspose", (_f32(1, 2, 5), _f32(2, 3, 3)), {"strides": [3], "output_padding": [2], "dilations": [2]}),
    ("ConvTranspose", (_f32(1, 2, 4, 4), _f32(2, 3, 3, 3)), {"strides": [2, 2], "auto_pad": "SAME_UPPER"}),
    ("ConvTranspose", (_f32(1, 2, 4, 4), _f32(2, 3, 3, 3)), {"strides": [2, 2], "output_shape": [9, 8]}),
]  # fmt: skip


@pytest.mark.parametrize("case", range(len(CONVOLUTIONS)))
def test_convolution_is_the_same_without_pytorch(case: int, monkeypatch: pytest.MonkeyPatch) -> None:
    op_type, inputs, attributes = CONVOLUTIONS[case]
    (expected,) = run_one(op_type, *inputs, **attributes)
    monkeypatch.setattr(pytorch, "find_torch", lambda: None)
    (actual,) = run_one(op_type, *inputs, **attributes)
    np.testing.assert_allclose(actual, expected, rtol=1e-13, atol=1e-14)


def test_large_products_are_the_same_without_pytorch(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = RNG.normal(size=(3, 64, 80)), RNG.normal(size=(80, 70))
    for left, right in ((a, b), (a[:, ::-1], b), (np.swapaxes(a, 1, 2), a), (np.broadcast_to(a[:1], a.shape), b)):
        expected = pytorch.product(left, right)
        np.testing.assert_allclose(expected, np.matmul(left, right), rtol=1e-12, atol=1e-13)
    monkeypatch.delitem(pytorch.sys.modules, "torch", raising=False)
    np.testing.assert_allclose(pytorch.product(a, b), np.matmul(a, b), rtol=1e-15)


def test_convolution_of_an_expanded_input() -> None:
    body = (
        "g (float[1] x) => (float[1,1,2,2] y) <int64[4] s = {1, 1, 3, 3}, float[1,1,2,2] w = {1, 2, 3, 4}> "
        "{ e = Expand(x, s) y = Conv(e, w) }"
    )
    assert Float64Evaluator(parse(body)).run({"x": np.array([0.5])})[0].tolist() == [[[[5.0, 5.0], [5.0, 5.0]]]]


# ---- pooling


def test_average_with_ceil_mode_counts_the_declared_padding_only() -> None:
    x = np.arange(5.0, dtype=np.float32).reshape(1, 1, 5)
    options = {"kernel_shape": [3], "strides": [2], "pads": [0, 1], "ceil_mode": 1}
    (with_pad,) = run_one("AveragePool", x, count_include_pad=1, **options)
    (without,) = run_one("AveragePool", x, count_include_pad=0, **options)
    assert with_pad.ravel().tolist() == [1.0, 3.0, 2.0]
    assert without.ravel().tolist() == [1.0, 3.0, 4.0]


def test_a_window_that_would_start_in_the_padding_is_dropped() -> None:
    x = np.arange(4.0, dtype=np.float32).reshape(1, 1, 4)
    (y,) = run_one("MaxPool", x, kernel_shape=[2], strides=[3], pads=[0, 1], ceil_mode=1)
    assert y.ravel().tolist() == [1.0, 3.0]
    (z,) = run_one("MaxPool", x[..., :3], kernel_shape=[1], strides=[2], pads=[0, 1], ceil_mode=1)
    assert z.ravel().tolist() == [0.0, 2.0]


def test_large_windows_agree_with_small_ones_composed() -> None:
    x = _f32(1, 2, 16, 16)
    (large,) = run_one("AveragePool", x, kernel_shape=[8, 8], strides=[8, 8])
    (small,) = run_one("AveragePool", x, kernel_shape=[2, 2], strides=[2, 2])
    np.testing.assert_allclose(large, small.reshape(1, 2, 2, 4, 2, 4).mean((3, 5)), rtol=1e-13, atol=1e-15)


def test_max_pool_keeps_nan_and_negative_infinity() -> None:
    x = np.array([np.nan, 1.0, -np.inf, -np.inf], dtype=np.float32).reshape(1, 1, 4)
    (y,) = run_one("MaxPool", x, kernel_shape=[2], strides=[2])
    np.testing.assert_array_equal(y.ravel(), [np.nan, -np.inf])
    values, where = run_one("MaxPool", x, kernel_shape=[2], strides=[2], outputs=2)
    np.testing.assert_array_equal(values.ravel(), [np.nan, -np.inf])
    assert where.ravel().tolist() == [0, 2]


# ---- integers


@pytest.mark.parametrize(
    ("a", "b", "quotient", "remainder", "fmod"),
    [(7, 2, 3, 1, 1), (-7, 2, -3, 1, -1), (7, -2, -3, -1, 1), (-7, -2, 3, -1, -1), (-8, 2, -4, 0, 0)],
)
def test_integer_division_truncates(a: int, b: int, quotient: int, remainder: int, fmod: int) -> None:
    x, y = np.array([a]), np.array([b])
    assert run_one("Div", x, y)[0].tolist() == [quotient]
    assert run_one("Mod", x, y)[0].tolist() == [remainder]
    assert run_one("Mod", x, y, fmod=1)[0].tolist() == [fmod]


def test_integers_wrap_and_shift_in_their_own_type() -> None:
    big = np.array([200], dtype=np.uint8)
    assert run_one("Add", big, big)[0].tolist() == [144]
    assert run_one("BitShift", big, np.array([1], dtype=np.uint8), direction="LEFT")[0].tolist() == [144]
    assert run_one("ReduceSum", np.full(3, 2**31 - 1, dtype=np.int32), keepdims=0)[0].dtype == np.int32
    exact = np.array([2**62 + 1])
    assert run_one("Max", exact, exact - 1)[0].tolist() == [2**62 + 1]
    assert run_one("Pow", np.array([3]), np.array([33]))[0].tolist() == [3**33]


def test_casts_truncate_and_test_for_zero() -> None:
    x = np.array([-1.9, 1.9, 0.0, 1e-30], dtype=np.float32)
    assert run_one("Cast", x, to=7)[0].tolist() == [-1, 1, 0, 0]
    assert run_one("Cast", x, to=9)[0].tolist() == [True, True, False, True]
    assert run_one("Cast", np.array([300]), to=2)[0].tolist() == [44]


# ---- NaN, infinity, empty


def test_nan_passes_through_maxima_and_clips() -> None:
    x = np.array([np.nan, 1.0], dtype=np.float32)
    for op_type in ("Relu", "Clip", "LeakyRelu", "Elu", "Gelu", "HardSigmoid"):
        assert np.isnan(run_one(op_type, x)[0][0]), op_type
    assert np.isnan(run_one("Max", x, np.zeros(2, dtype=np.float32))[0][0])
    assert np.isnan(run_one("ReduceMax", x, keepdims=0)[0])


def test_clip_without_bounds_ends_at_the_largest_value_of_the_type() -> None:
    (y,) = run_one("Clip", np.array([np.inf, -np.inf], dtype=np.float32))
    assert y.tolist() == [float(np.finfo(np.float32).max), float(np.finfo(np.float32).min)]


def test_reductions_of_nothing() -> None:
    empty = np.zeros((2, 0), dtype=np.float32)
    axes = np.array([1])
    expected = {
        "ReduceSum": 0.0, "ReduceProd": 1.0, "ReduceMax": -np.inf, "ReduceMin": np.inf, "ReduceL1": 0.0,
        "ReduceLogSumExp": -np.inf, "ReduceLogSum": -np.inf, "ReduceSumSquare": 0.0,
    }  # fmt: skip
    for op_type, value in expected.items():
        assert run_one(op_type, empty, axes, keepdims=0)[0].tolist() == [value] * 2, op_type
    assert np.isnan(run_one("ReduceMean", empty, axes, keepdims=0)[0]).all()


def test_log_softmax_of_infinities_is_that_of_ieee() -> None:
    (y,) = run_one("LogSoftmax", np.array([[np.inf, 0.0], [-np.inf, -np.inf], [-np.inf, 0.0]]))
    assert np.isnan(y[:2]).all()
    assert y[2].tolist() == [-np.inf, 0.0]


# ---- operator sets


def test_softmax_before_opset_13_normalizes_all_trailing_dimensions() -> None:
    x = _f32(2, 3, 4)
    (old,) = run_one("Softmax", x, opset=11, axis=1)
    (new,) = run_one("Softmax", x, opset=13, axis=1)
    np.testing.assert_allclose(old.sum((1, 2)), 1.0, rtol=1e-15)
    np.testing.assert_allclose(new.sum(1), 1.0, rtol=1e-15)
    assert run_one("Hardmax", x, opset=11, axis=1)[0].sum() == 2


def test_axes_as_attribute_and_as_input() -> None:
    x, axes = _f32(2, 1, 3), np.array([1])
    assert run_one("Squeeze", x, opset=11, axes=[1])[0].shape == run_one("Squeeze", x, axes)[0].shape == (2, 3)
    assert run_one("Unsqueeze", x, opset=11, axes=[0])[0].shape == run_one("Unsqueeze", x, np.array([0]))[0].shape
    old, new = run_one("ReduceSum", x, opset=11, axes=[2]), run_one("ReduceSum", x, np.array([2]))
    np.testing.assert_array_equal(old[0], new[0])
    old, new = run_one("Slice", x, opset=9, starts=[-2], ends=[9], axes=[2]), (x[..., -2:],)
    np.testing.assert_array_equal(old[0], new[0])
    assert run_one("Pad", x, opset=9, pads=[0, 0, 1, 0, 0, 0], value=7.0)[0][0, 0, 0] == 7.0
    assert [part.shape[2] for part in run_one("Split", x, opset=11, axis=2, split=[1, 2], outputs=2)] == [1, 2]
    assert (
        0.0
        <= run_one("Clip", x, opset=10, min=0.0, max=0.5)[0].min()
        <= run_one("Clip", x, opset=10, max=0.5)[0].max()
        <= 0.5
    )


def test_resize_of_opset_10_is_asymmetric() -> None:
    x = np.arange(4.0, dtype=np.float32).reshape(1, 1, 2, 2)
    scales = np.array([1, 1, 2, 2], dtype=np.float32)
    (y,) = run_one("Resize", x, scales, opset=10)
    assert y[0, 0].tolist() == [[0, 0, 1, 1], [0, 0, 1, 1], [2, 2, 3, 3], [2, 2, 3, 3]]
    assert run_one("Upsample", x, scales, opset=9)[0].tolist() == y.tolist()
    (linear,) = run_one("Resize", x, scales, opset=10, mode="linear")
    assert linear[0, 0, 0].tolist() == [0.0, 0.5, 1.0, 1.0]


def test_group_normalization_scales_groups_before_opset_21_and_channels_after() -> None:
    x = _f32(1, 4, 3)
    (old,) = run_one("GroupNormalization", x, _f32(2), _f32(2), opset=18, num_groups=2)
    (new,) = run_one("GroupNormalization", x, _f32(4), _f32(4), opset=21, num_groups=2)
    assert old.shape == new.shape == x.shape


def test_batch_normalization_in_training_mode_gives_running_statistics() -> None:
    x = _f32(3, 2, 4)
    ones, zeros = np.ones(2, dtype=np.float32), np.zeros(2, dtype=np.float32)
    y, mean, variance = run_one("BatchNormalization", x, ones, zeros, zeros, ones, outputs=3, training_mode=1)
    momentum = float(np.float32(0.9))
    wide = x.astype(np.float64)
    np.testing.assert_allclose(mean, wide.mean((0, 2)) * (1 - momentum), rtol=1e-12)
    np.testing.assert_allclose(variance, momentum + wide.var((0, 2)) * (1 - momentum), rtol=1e-12)
    np.testing.assert_allclose(y.mean((0, 2)), 0.0, atol=1e-15)


def test_dropout_in_training_mode_is_missing() -> None:
    with pytest.raises(MissingKernel, match="random"):
        run_one("Dropout", _f32(3), np.array(0.5, dtype=np.float32), np.array(True))


# ---- resampling


def test_nearest_positions_from_sizes_are_exact() -> None:
    for size in range(1, 60):
        x = np.arange(float(size), dtype=np.float32).reshape(1, size)
        options = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
        for output in (size, 2 * size, 3 * size, 7 * size):
            empty = np.zeros(0, dtype=np.float32)
            (y,) = run_one("Resize", x, empty, empty, np.array([1, output]), **options)
            assert y[0].tolist() == [i * size // output for i in range(output)]


# ---- selection


def test_top_k_takes_lower_indices_of_equal_elements() -> None:
    x = np.array([1.0, 3.0, 3.0, 0.0, 3.0], dtype=np.float32)
    assert run_one("TopK", x, np.array([2]), outputs=2)[1].tolist() == [1, 2]
    assert run_one("TopK", -x, np.array([2]), outputs=2, largest=0)[1].tolist() == [1, 2]


def test_an_index_out_of_range_is_an_error() -> None:
    with pytest.raises(ToolError, match="Gather"):
        run_one("Gather", _f32(3), np.array([3]))


# ---- recurrent networks


@pytest.mark.parametrize("op_type", ["RNN", "GRU", "LSTM"])
def test_shorter_sequences_in_both_directions(op_type: str) -> None:
    gates = {"RNN": 1, "GRU": 3, "LSTM": 4}[op_type]
    x, w, r, b = _f32(5, 2, 3), _f32(2, gates * 4, 3), _f32(2, gates * 4, 4), _f32(2, 2 * gates * 4)
    lengths = np.array([5, 3], dtype=np.int32)
    options = {"hidden_size": 4, "direction": "bidirectional", "outputs": 2}
    y, last = run_one(op_type, x, w, r, b, lengths, **options)
    alone, last_alone = run_one(op_type, x[:3, 1:], w, r, b, **options)
    np.testing.assert_allclose(y[:3, :, 1:], alone, rtol=1e-14)
    np.testing.assert_allclose(last[:, 1:], last_alone, rtol=1e-14)
    assert not y[3:, :, 1].any()


# ---- operators of ONNX Runtime


def test_contributed_operators() -> None:
    x, scale, bias = _f32(2, 6), _f32(6), _f32(6)
    own: dict[str, Any] = {"domain": "com.microsoft"}
    np.testing.assert_array_equal(run_one("Gelu", x, **own)[0], run_one("Gelu", x)[0])
    np.testing.assert_array_equal(
        run_one("BiasGelu", x, bias, **own)[0], run_one("Gelu", x.astype(np.float64) + bias)[0]
    )
    fused = run_one("FusedMatMul", x, x, transB=1, alpha=0.5, **own)[0]
    np.testing.assert_allclose(fused, x.astype(np.float64) @ x.T.astype(np.float64) / 2, rtol=1e-14)
    total = x.astype(np.float64) + x
    skip = run_one("SkipLayerNormalization", x, x, scale, bias, epsilon=1e-5, **own)[0]
    np.testing.assert_allclose(skip, run_one("LayerNormalization", total, scale.astype(float), bias.astype(float))[0])


@pytest.mark.parametrize("block", [[1, 1], [2, 1]])
def test_columns_of_another_number_of_blocks_are_an_error(block: list[int]) -> None:
    with pytest.raises(ToolError, match="Col2Im"):
        run_one("Col2Im", _f32(1, 12, 6), np.array([3, 4]), np.array(block))
