"""Every family of operators: what the replay gives, against TensorFlow's own float64 and its float32."""

from __future__ import annotations

import numpy as np
import pytest

from trueport.adapters.float64.tensorflow.functions import program_of_source
from trueport.adapters.sources.tensorflow_setup import import_tensorflow
from trueport.adapters.sources.tensorflow_source import traced

tf = import_tensorflow()
RNG = np.random.default_rng(5)


def _normal(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


X = _normal(3, 4)
POSITIVE = np.abs(X) + np.float32(0.5)
IMAGE = _normal(2, 7, 7, 3)
KERNEL = _normal(3, 3, 3, 4)
SEQUENCE = _normal(2, 5, 3)
SQUARE = _normal(4, 4) + 4 * np.eye(4, dtype=np.float32)

DOUBLE = {
    "exp": (lambda x: tf.exp(x), X),
    "log1p": (lambda x: tf.math.log1p(x), POSITIVE),
    "erf": (lambda x: tf.math.erf(x), X),
    "lgamma": (lambda x: tf.math.lgamma(x), POSITIVE),
    "digamma": (lambda x: tf.math.digamma(x), POSITIVE),
    "tanh": (lambda x: tf.tanh(x), X),
    "sigmoid": (lambda x: tf.sigmoid(x), X),
    "softplus": (lambda x: tf.nn.softplus(x), X),
    "elu": (lambda x: tf.nn.elu(x), X),
    "selu": (lambda x: tf.nn.selu(x), X),
    "gelu": (lambda x: tf.nn.gelu(x), X),
    "swish": (lambda x: tf.nn.swish(x), X),
    "softmax": (lambda x: tf.nn.softmax(x), X),
    "log_softmax": (lambda x: tf.nn.log_softmax(x), X),
    "rsqrt": (lambda x: tf.math.rsqrt(x), POSITIVE),
    "pow": (lambda x: tf.pow(x, x), POSITIVE),
    "atan2": (lambda x: tf.atan2(x, x + 1), X),
    "floormod": (lambda x: tf.math.floormod(x, 0.75), X),
    "matmul": (lambda x: tf.matmul(x, x, transpose_b=True), X),
    "einsum": (lambda x: tf.einsum("bij,bkj->bik", x, x), SEQUENCE),
    "conv2d": (lambda x, k: tf.nn.conv2d(x, k, 2, "SAME"), IMAGE, KERNEL),
    "conv2d_dilated": (lambda x, k: tf.nn.conv2d(x, k, 1, "VALID", dilations=2), IMAGE, KERNEL),
    "depthwise": (lambda x, k: tf.nn.depthwise_conv2d(x, k, [1, 1, 1, 1], "SAME"), IMAGE, KERNEL),
    "conv_transpose": (
        lambda x, k: tf.nn.conv2d_transpose(x, tf.transpose(k, [0, 1, 3, 2]), [2, 14, 14, 4], 2, "SAME"),
        IMAGE,
        KERNEL,
    ),
    "max_pool": (lambda x: tf.nn.max_pool2d(x, 2, 2, "SAME"), IMAGE),
    "avg_pool": (lambda x: tf.nn.avg_pool2d(x, 3, 2, "SAME"), IMAGE),
    "mean": (lambda x: tf.reduce_mean(x, [1, 2]), IMAGE),
    "prod": (lambda x: tf.reduce_prod(x, 1), X),
    "variance": (lambda x: tf.math.reduce_variance(x, 1), X),
    "logsumexp": (lambda x: tf.reduce_logsumexp(x, 1), X),
    "cumsum": (lambda x: tf.cumsum(x, 1, exclusive=True, reverse=True), X),
    "cumprod": (lambda x: tf.math.cumprod(x, 0), X),
    "segment_sum": (lambda x: tf.math.segment_sum(x, [0, 0, 2]), X),
    "segment_max": (lambda x: tf.math.segment_max(x, [0, 0, 2]), X),
    "unsorted_mean": (lambda x: tf.math.unsorted_segment_mean(x, [1, 0, 1], 3), X),
    "gather_nd": (lambda x: tf.gather_nd(x, [[0, 1], [2, 3]]), X),
    "scatter": (lambda x: tf.tensor_scatter_nd_add(x, [[0], [0]], x[:2]), X),
    "top_k": (lambda x: tf.math.top_k(x, 2)[0], X),
    "sort": (lambda x: tf.sort(x), X),
    "strided": (lambda x: x[::-1, 3:0:-2], X),
    "pad": (lambda x: tf.pad(x, [[1, 0], [0, 2]], "REFLECT"), X),
    "space_to_depth": (lambda x: tf.nn.space_to_depth(x[:, :6, :6], 2), IMAGE),
    "where": (lambda x: tf.where(x > 0, x, tf.exp(x)), X),
    "clip": (lambda x: tf.clip_by_value(x, -0.5, 0.5), X),
    "l2": (lambda x: tf.nn.l2_normalize(x, 1), X),
    "inverse": (lambda x: tf.linalg.inv(x), SQUARE),
    "cholesky": (lambda x: tf.linalg.cholesky(tf.matmul(x, x, transpose_b=True)), SQUARE),
    "band": (lambda x: tf.linalg.band_part(x, 1, 0), SQUARE),
    "cond": (lambda x: tf.cond(tf.reduce_sum(x) > 0, lambda: tf.exp(x), lambda: tf.sin(x)), X),
    "while": (lambda x: tf.while_loop(lambda i, y: i < 4, lambda i, y: (i + 1, tf.tanh(y) + y), (0, x))[1], X),
    "switch_case": (
        lambda x: tf.switch_case(tf.argmax(x[0], output_type=tf.int32) % 2, [lambda: tf.exp(x), lambda: -x]),
        X,
    ),
    "map": (lambda x: tf.map_fn(lambda row: tf.exp(row), x), X),
    "scan": (lambda x: tf.scan(lambda a, row: tf.tanh(a + row), x), X),
    "cross_entropy": (lambda x: tf.nn.sparse_softmax_cross_entropy_with_logits([1, 0, 3], x), X),
    "batch_norm": (lambda x: tf.nn.batch_normalization(x, *tf.nn.moments(x, 0), 0.5, 1.5, 0.125), X),
    "rfft": (lambda x: tf.abs(tf.signal.rfft(x)), X),
    "complex": (lambda x: tf.math.real(tf.exp(tf.complex(x, x))), X),
    "roll": (lambda x: tf.roll(x, 1, 1), X),
    "one_hot": (lambda x: tf.one_hot(tf.cast(x, tf.int32), 3, dtype=x.dtype) + tf.reduce_sum(x), X),
    "norm": (lambda x: tf.norm(x, axis=1), X),
}
SINGLE = {
    "fused_batch_norm": lambda x: tf.compat.v1.nn.fused_batch_norm(
        x, tf.ones(3), tf.zeros(3), tf.fill([3], 0.5), tf.fill([3], 2.0), 0.125, is_training=False
    )[0],
    "fused_batch_norm_training": lambda x: tf.compat.v1.nn.fused_batch_norm(x, tf.ones(3), tf.zeros(3))[0],
    "bilinear": lambda x: tf.image.resize(x, [5, 11]),
    "bilinear_aligned": lambda x: tf.compat.v1.image.resize_bilinear(x, [5, 11], align_corners=True),
    "bilinear_legacy": lambda x: tf.compat.v1.image.resize_bilinear(x, [5, 11]),
    "bicubic": lambda x: tf.image.resize(x, [5, 11], method="bicubic"),
    "nearest": lambda x: tf.image.resize(x, [5, 11], method="nearest"),
    "antialiased": lambda x: tf.image.resize(x, [3, 4], antialias=True),
    "lanczos": lambda x: tf.image.resize(x, [3, 4], method="lanczos3", antialias=True),
    "lrn": lambda x: tf.nn.local_response_normalization(x, 1, 1.0, 0.5, 0.75),
    "crop": lambda x: tf.image.crop_and_resize(x, [[0.1, 0.2, 0.8, 0.9]], [1], [4, 4]),
    "hsv": lambda x: tf.image.rgb_to_hsv(tf.sigmoid(x)),
    "fake_quant": lambda x: tf.quantization.fake_quant_with_min_max_args(x, -2, 2),
}


def _replayed(function, *arrays):
    specs = [tf.TensorSpec(a.shape, a.dtype, f"x{i}") for i, a in enumerate(arrays)]
    source = traced(tf.function(function, input_signature=specs), None, {}, "f")
    values = {i.name: a for i, a in zip(source.inputs, arrays, strict=True)}
    program = program_of_source(source)
    return np.asarray(program.run(values)[0]), source(values)[0], program


@pytest.mark.parametrize("name", DOUBLE)
def test_what_tensorflow_computes_in_double_is_met(name):
    function, *arrays = DOUBLE[name]
    value, real, program = _replayed(function, *arrays)
    wide = np.asarray(function(*(tf.constant(a.astype(np.float64)) for a in arrays)))
    assert program.coarse == ()
    assert value.shape == wide.shape == real.shape
    assert value.dtype == np.float64
    scale = np.abs(wide).max()
    np.testing.assert_allclose(value, wide, rtol=1e-13, atol=1e-14 * scale)
    np.testing.assert_allclose(value, real, rtol=1e-5, atol=1e-6 * scale)


@pytest.mark.parametrize("name", SINGLE)
def test_what_tensorflow_computes_in_single_only_is_met(name):
    value, real, _ = _replayed(SINGLE[name], IMAGE)
    assert value.shape == real.shape
    np.testing.assert_allclose(value, real, rtol=1e-5, atol=1e-6 * np.abs(real).max())


def test_variables_of_one_name_are_told_apart():
    first, second = tf.Variable(X), tf.Variable(2 * X)
    assert first.name == second.name
    function = tf.function(lambda x: x * first - second, input_signature=[tf.TensorSpec(X.shape)])
    source = traced(function, None, {}, "the test")
    program = program_of_source(source)
    (found,) = program.run({program.input_names[0]: X})
    np.testing.assert_array_equal(found, X.astype(np.float64) ** 2 - 2 * X.astype(np.float64))
