"""Six small models whose every operator shows at an output."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import numpy_helper, parser

_HEAD = '<ir_version: 8, opset_import: ["": 17]>'
IMAGE = """
image (float[N, 3, 8, 8] x) => (float[N, 6] y, float[N, 4, 4, 4] z) {
  c1 = Conv<kernel_shape = [3, 3], pads = [1, 1, 1, 1]>(x, c1w, c1b)
  n1 = BatchNormalization<epsilon = 1e-3>(c1, scale, shift, mean, var)
  a1 = Relu(n1)
  z = MaxPool<kernel_shape = [2, 2], strides = [2, 2]>(a1)
  c2 = Conv<kernel_shape = [3, 3], strides = [1, 1], dilations = [1, 1], group = 2, pads = [1, 1, 1, 1]>(z, c2w, c2b)
  a2 = LeakyRelu<alpha = 0.1>(c2)
  p2 = AveragePool<kernel_shape = [2, 2], strides = [1, 1], pads = [0, 0, 1, 1], count_include_pad = 1>(a2)
  g = GlobalAveragePool(p2)
  f = Flatten(g)
  d = Gemm<transB = 1, alpha = 0.5, beta = 2.0>(f, dw, db)
  y = Softmax<axis = 1>(d)
}"""
ATTENTION = """
attention (float[N, 5, 8] x, float[N, 5] keep) => (float[N, 5, 8] y) {
  q0 = MatMul(x, wq) q = Add(q0, bq)
  k0 = MatMul(x, wk) k = Add(k0, bk)
  v0 = MatMul(x, wv) v = Add(v0, bv)
  kt = Transpose<perm = [0, 2, 1]>(k)
  s0 = MatMul(q, kt)
  s1 = Mul(s0, factor)
  m0 = Sub(one, keep)
  m1 = Mul(m0, low)
  m2 = Unsqueeze(m1, first)
  s2 = Add(s1, m2)
  p = Softmax<axis = -1>(s2)
  o = MatMul(p, v)
  o1 = MatMul(o, wo)
  r1 = Add(x, o1)
  l1 = LayerNormalization<axis = -1, epsilon = 1e-5>(r1, gain, bias)
  h0 = MatMul(l1, w1)
  h1 = Add(h0, b1)
  e0 = Div(h1, root)
  e1 = Erf(e0)
  e2 = Add(e1, one)
  e3 = Mul(h1, e2)
  e4 = Mul(e3, half)
  h2 = MatMul(e4, w2)
  y = Add(l1, h2)
}"""
RECURRENT = """
recurrent (float[T, N, 4] x) => (float[T, N, 6] y, float[1, N, 3] last) {
  a, ah, ac = LSTM<hidden_size = 3, direction = "bidirectional">(x, lw, lr, lb)
  a1 = Transpose<perm = [0, 2, 1, 3]>(a)
  a2 = Reshape(a1, joined)
  t = Tanh(a2)
  g, last = GRU<hidden_size = 3, linear_before_reset = 1>(t, gw, gr, gb)
  g1 = Squeeze(g, first)
  y = Concat<axis = 2>(g1, g1)
}"""
ELEMENTS = """
elements (float[N, 6] x, float[N, 6] w) => (float[N, 6] a, float[N, 6] b, float[N, 6] c, float[N, 6] d, float[N, 6] e) {
  s = Sub(x, w)
  w2 = Mul(w, w)
  w3 = Add(w2, one)
  a = Div(s, w3)
  h = HardSwish(s)
  l = Elu<alpha = 0.7>(w)
  b = Add(h, l)
  sw0 = Sigmoid(x)
  sw = Mul(x, sw0)
  sp = Softplus(w)
  c = Sub(sw, sp)
  k = Clip(x, least, most)
  ex = Exp(k)
  hs = HardSigmoid<alpha = 0.25, beta = 0.5>(w)
  d = Mul(ex, hs)
  r = Sqrt(w3)
  lg = Log(w3)
  m = Min(r, x)
  q = Max(m, lg)
  n = Neg(q)
  sel = Selu(n)
  e = PRelu(sel, slope)
}"""
SHAPES = """
shapes (float[N, 4, 6] x) =>
  (float[N, 5, 6] a, float[N, 4, 9] b, float[N, 4, 1] c, float[N, 4, 12] d, float[N, 4, 6] e) {
  head = Slice(x, zero, two, axis1)
  tail = Slice(x, one, four, axis1)
  a = Concat<axis = 1>(head, tail)
  b = Pad<mode = "constant">(x, pads, fill)
  sq = Mul(x, x)
  c = ReduceMean<axes = [2], keepdims = 1>(sq)
  d = Resize<mode = "linear", coordinate_transformation_mode = "half_pixel">(x, , scales)
  first, second = Split<axis = 2>(x, parts)
  sw = Concat<axis = 2>(second, first)
  cs = CumSum(sw, place)
  t = Transpose<perm = [0, 2, 1]>(cs)
  ga = Gather<axis = 1>(t, order)
  bk = Transpose<perm = [0, 2, 1]>(ga)
  pos = Greater(x, limit)
  e = Where(pos, bk, x)
}"""
NORMS = """
norms (float[N, 4, 10] x) => (float[N, 4, 10] a, float[N, 4, 10] b, float[N, 4, 10] c, float[N, 4] d) {
  i = InstanceNormalization<epsilon = 1e-5>(x, scale, shift)
  a = Tanh(i)
  m = ReduceMean<axes = [1], keepdims = 1>(x)
  dx = Sub(x, m)
  d2 = Pow(dx, square)
  v = ReduceMean<axes = [1], keepdims = 1>(d2)
  ve = Add(v, eps)
  sd = Sqrt(ve)
  n = Div(dx, sd)
  n1 = Mul(n, scale1)
  b = Add(n1, shift1)
  l2 = ReduceL2<axes = [2], keepdims = 1>(x)
  l3 = Max(l2, tiny)
  u = Div(x, l3)
  c = LogSoftmax<axis = 2>(u)
  d = ReduceLogSumExp<axes = [2], keepdims = 0>(x)
}"""

TEXTS = {
    "image": IMAGE, "attention": ATTENTION, "recurrent": RECURRENT, "elements": ELEMENTS, "shapes": SHAPES,
    "norms": NORMS,
}  # fmt: skip
SIZES: dict[str, dict[str, tuple[int, ...]]] = {
    "image": {
        "c1w": (4, 3, 3, 3), "c1b": (4,), "scale": (4,), "shift": (4,), "mean": (4,), "var": (4,),
        "c2w": (6, 2, 3, 3), "c2b": (6,), "dw": (6, 6), "db": (6,),
    },
    "attention": {
        "wq": (8, 8), "wk": (8, 8), "wv": (8, 8), "wo": (8, 8), "bq": (8,), "bk": (8,), "bv": (8,), "gain": (8,),
        "bias": (8,), "w1": (8, 12), "b1": (12,), "w2": (12, 8),
    },
    "recurrent": {
        "lw": (2, 12, 4), "lr": (2, 12, 3), "lb": (2, 24), "gw": (1, 9, 6), "gr": (1, 9, 3), "gb": (1, 18),
    },
    "elements": {"slope": (6,)},
    "shapes": {},
    "norms": {"scale": (4,), "shift": (4,), "scale1": (1, 4, 1), "shift1": (1, 4, 1)},
}  # fmt: skip
_FIXED: dict[str, dict[str, object]] = {
    "image": {},
    "attention": {
        "factor": np.float32(8**-0.5), "one": np.float32(1), "low": np.float32(-1e4), "root": np.float32(2**0.5),
        "half": np.float32(0.5), "first": np.array([1]),
    },
    "recurrent": {"joined": np.array([0, 0, 6]), "first": np.array([1])},
    "elements": {"one": np.float32(1), "least": np.float32(-0.8), "most": np.float32(1.1)},
    "shapes": {
        "zero": np.array([0]), "one": np.array([1]), "two": np.array([2]), "four": np.array([4]),
        "axis1": np.array([1]), "pads": np.array([0, 0, 1, 0, 0, 2]), "fill": np.float32(0.25),
        "scales": np.array([1, 1, 2], np.float32), "parts": np.array([2, 4]), "place": np.int64(2),
        "order": np.array([5, 0, 3, 1, 2, 4]), "limit": np.float32(0.2),
    },
    "norms": {"square": np.float32(2), "eps": np.float32(1e-5), "tiny": np.float32(1e-12)},
}  # fmt: skip


def model(name: str) -> onnx.ModelProto:
    """Returns the model with weights of a fixed seed."""
    made = parser.parse_model(_HEAD + TEXTS[name])
    rng = np.random.default_rng(5)
    for weight, shape in SIZES[name].items():
        values = rng.normal(size=shape) / np.sqrt(max(np.prod(shape[1:]), 4))
        if weight in ("var", "slope", "scale", "gain"):
            values = 0.5 + np.abs(values)
        made.graph.initializer.append(numpy_helper.from_array(values.astype(np.float32), weight))
    for constant, value in _FIXED[name].items():
        made.graph.initializer.append(numpy_helper.from_array(np.asarray(value), constant))
    onnx.checker.check_model(made, full_check=True)
    return made
