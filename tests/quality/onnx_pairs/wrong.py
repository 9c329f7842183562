"""Mutants: each means something else than the model that it was made from."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.quality.onnx_pairs.edits import Edit, attribute, both, constant, operands, operator, written
from tests.quality.onnx_pairs.models import SIZES


def _one_weight(values: Any) -> Any:
    """One weight, the largest, off by a thousandth."""
    changed = values.copy()
    changed.flat[int(np.abs(changed).argmax())] *= np.float32(1.001)
    return changed


def _scaled(values: Any) -> Any:
    return values * np.float32(1.001)


WRONG: dict[str, dict[str, Edit]] = {
    "image": {
        "bias dropped": operands("c1", "x", "c1w"),
        "second bias dropped": operands("c2", "z", "c2w"),
        "bias of Gemm dropped": operands("d", "f", "dw"),
        "epsilon of BatchNormalization": attribute("n1", epsilon=1e-5),
        "pad on the other side": attribute("c1", pads=[0, 0, 2, 2]),
        "pad of the pool": attribute("p2", pads=[1, 1, 0, 0]),
        "padding not counted": attribute("p2", count_include_pad=0),
        "mean and variance swapped": operands("n1", "c1", "scale", "shift", "var", "mean"),
        "scale and shift swapped": operands("n1", "c1", "shift", "scale", "mean", "var"),
        "no activation": operator("a1", "Identity"),
        "LeakyRelu for Relu": operator("a1", "LeakyRelu"),
        "slope of LeakyRelu": attribute("a2", alpha=0.01),
        "slope of LeakyRelu nearly": attribute("a2", alpha=0.1001),
        "Softplus for Relu": operator("a1", "Softplus"),
        "average for maximum": both(operator("z", "AveragePool"), attribute("z", kernel_shape=[2, 2], strides=[2, 2])),
        "axis of Softmax": attribute("y", axis=0),
        "LogSoftmax": operator("y", "LogSoftmax"),
        "alpha of Gemm": attribute("d", alpha=0.501),
        "beta of Gemm": attribute("d", beta=1.0),
        "weights not transposed": attribute("d", transB=0),
        "kernel flipped": constant("c1w", lambda w: w[..., ::-1]),
        "kernel transposed": constant("c2w", lambda w: np.swapaxes(w, 2, 3)),
        "channels swapped": constant("c1w", lambda w: w[:, ::-1]),
        "groups swapped": constant("c2w", lambda w: np.concatenate([w[3:], w[:3]])),
        "weights in half precision": constant("c2w", lambda w: w.astype(np.float16)),
        "weights rounded to 8 bits": constant("dw", lambda w: np.rint(w * 127) / 127),
    },
    "attention": {
        "sign of the mask": constant("low", np.negative),
        "mask inverted": operands("m0", "keep", "one"),
        "mask ignored": operands("p", "s1"),
        "mask over the queries": constant("first", lambda a: a + 1),
        "mask too weak": constant("low", lambda _: -10.0),
        "scale": constant("factor", lambda _: 8**-1.0),
        "scale nearly": constant("factor", lambda f: f * np.float32(1.0001)),
        "keys and queries swapped": written("kt s0", "qt = Transpose<perm = [0, 2, 1]>(q) s0 = MatMul(k, qt)"),
        "axis of Softmax": attribute("p", axis=1),
        "epsilon": attribute("l1", epsilon=1e-6),
        "epsilon large": attribute("l1", epsilon=1e-3),
        "axis of LayerNormalization": attribute("l1", axis=1),
        "no bias of LayerNormalization": operands("l1", "r1", "gain"),
        "tanh for erf": written(
            "e0 e1 e2",
            "p1 = Mul(h1, h1) p2 = Mul(p1, h1) p3 = Mul(p2, near) p4 = Add(h1, p3) p5 = Mul(p4, rate) e1 = Tanh(p5) "
            "e2 = Add(e1, one)",
            near=np.float32(0.044715),
            rate=np.float32((2 / np.pi) ** 0.5),
        ),
        "sigmoid for erf": written(
            "e0 e1 e2 e3 e4", "e0 = Mul(h1, rate) e1 = Sigmoid(e0) e4 = Mul(h1, e1)", rate=np.float32(1.702)
        ),
        "root": constant("root", lambda _: 1.4142),
        "half": constant("half", lambda h: h * np.float32(1.0001)),
        "residual dropped": operands("r1", "o1", "o1"),
        "residual before the norm": operands("y", "r1", "h2"),
        "bias of the query dropped": written("q", "q = Identity(q0)"),
        "keys of the queries": operands("k0", "x", "wq"),
        "values of the keys": operands("o", "p", "k"),
        "heads transposed": constant("wo", np.transpose),
        "ReLU for GELU": written("e0 e1 e2 e3 e4", "e4 = Relu(h1)"),
    },
    "recurrent": {
        "gates of LSTM in another order": constant("lw", lambda w: w[:, [3, 4, 5, 0, 1, 2, 6, 7, 8, 9, 10, 11]]),
        "directions swapped": constant("lr", lambda w: w[::-1]),
        "reset before": attribute("g", linear_before_reset=0),
        "reversed": attribute("g", direction="reverse"),
        "bias dropped": operands("a", "x", "lw", "lr"),
        "bias of GRU dropped": operands("g", "t", "gw", "gr"),
        "bias of the recurrence dropped": constant("lb", lambda b: np.where(np.arange(24) < 12, b, 0)),
        "gates of GRU in another order": constant("gr", lambda w: w[:, [3, 4, 5, 0, 1, 2, 6, 7, 8]]),
        "HardSigmoid for Sigmoid": attribute("g", activations=["HardSigmoid", "Tanh"]),
        "Relu for Tanh": attribute("a", activations=["Sigmoid", "Relu", "Tanh"] * 2),
        "input and forget coupled": attribute("a", input_forget=1),
        "clip": attribute("a", clip=1.0),
        "no Tanh between": operator("t", "Identity"),
        "directions interleaved": attribute("a1", perm=[0, 2, 3, 1]),
        "last and first": operands("y", "g1", "t"),
    },
    "elements": {
        "swapped operands of Sub": operands("s", "w", "x"),
        "swapped operands of Div": operands("a", "w3", "s"),
        "swapped operands of the second Sub": operands("c", "sp", "sw"),
        "Swish for HardSwish": written("h", "h0 = Sigmoid(s) h = Mul(s, h0)"),
        "HardSwish with a rounded sixth": written(
            "h", "h0 = HardSigmoid<alpha = 0.1667, beta = 0.5>(s) h = Mul(s, h0)"
        ),
        "HardSwish for Swish": written("sw0 sw", "sw = HardSwish(x)"),
        "alpha of Elu": attribute("l", alpha=1.0),
        "Celu for Elu": both(operator("l", "Celu"), attribute("l", alpha=0.7)),
        "lower end of Clip": constant("least", lambda v: v * 1.001),
        "upper end of Clip": constant("most", lambda v: v * 0.999),
        "no upper end": operands("k", "x", "least"),
        "ends swapped": operands("k", "x", "most", "least"),
        "Relu for Softplus": operator("sp", "Relu"),
        "alpha of HardSigmoid": attribute("hs", alpha=0.2),
        "alpha of HardSigmoid nearly": attribute("hs", alpha=0.2501),
        "Sigmoid for HardSigmoid": operator("hs", "Sigmoid"),
        "Min for Max": operator("q", "Min"),
        "Max for Min": operator("m", "Max"),
        "Selu with rounded constants": attribute("sel", alpha=1.6733, gamma=1.0507),
        "Elu for Selu": operator("sel", "Elu"),
        "slope of PRelu of one channel": constant("slope", lambda s: np.full_like(s, s[0])),
        "sign dropped": operator("n", "Identity"),
        "log of the next": constant("one", lambda v: v + np.float32(1e-4)),
        "Abs for Sqrt": operator("r", "Abs"),
        "Softplus that overflows": written("sp", "ew = Exp(w) e1 = Add(ew, one) sp = Log(e1)"),
        "Tanh for Sigmoid": operator("sw0", "Tanh"),
        "Expm1": written("ex", "e0 = Exp(k) ex = Sub(e0, one)"),
    },
    "shapes": {
        "slice too short at the front": constant("zero", lambda v: v + 1),
        "slice one later": both(constant("one", lambda v: v - 1), constant("four", lambda v: v - 1)),
        "slice over the other half": operands("head", "x", "two", "four", "axis1"),
        "concatenated the other way": operands("a", "tail", "head"),
        "pad at the other end": constant("pads", lambda p: p[[0, 1, 5, 3, 4, 2]]),
        "edge for constant": both(attribute("b", mode="edge"), operands("b", "x", "pads")),
        "reflect for constant": both(attribute("b", mode="reflect"), operands("b", "x", "pads")),
        "fill": constant("fill", lambda v: v * np.float32(1.001)),
        "no fill": operands("b", "x", "pads"),
        "axis of the mean": attribute("c", axes=[1]),
        "sum for mean": written("c", "two_ = Constant<value_ints = [2]>() c = ReduceSum<keepdims = 1>(sq, two_)"),
        "L2 for the mean of squares": both(operator("c", "ReduceL2"), attribute("c", axes=[2], keepdims=1)),
        "nearest for linear": attribute("d", mode="nearest"),
        "cubic for linear": attribute("d", mode="cubic"),
        "asymmetric": attribute("d", coordinate_transformation_mode="asymmetric"),
        "align corners": attribute("d", coordinate_transformation_mode="align_corners"),
        "parts": constant("parts", lambda v: v[::-1]),
        "order": constant("order", lambda v: v[[1, 0, 2, 3, 4, 5]]),
        "exclusive": attribute("cs", exclusive=1),
        "reverse": attribute("cs", reverse=1),
        "axis of CumSum": constant("place", lambda _: 1),
        "GreaterOrEqual of another limit": constant("limit", lambda v: v * 0),
        "Less for Greater": operator("pos", "Less"),
        "branches of Where swapped": operands("e", "pos", "x", "bk"),
        "parts not swapped": operands("sw", "first", "second"),
    },
    "norms": {
        "epsilon of InstanceNormalization": attribute("i", epsilon=1e-3),
        "epsilon": constant("eps", lambda _: 1e-6),
        "epsilon nearly": constant("eps", lambda _: 1.1e-5),
        "epsilon outside of the root": written("ve sd", "sd0 = Sqrt(v) sd = Add(sd0, eps)"),
        "unbiased variance": written("ve", "v_ = Mul(v, more) ve = Add(v_, eps)", more=np.float32(4 / 3)),
        "axis of the mean": attribute("m", axes=[2]),
        "axis of the variance": attribute("v", axes=[2]),
        "not centred": operands("n", "x", "sd"),
        "cube for square": constant("square", lambda v: v + 1),
        "L1 for L2": both(operator("l2", "ReduceL1"), attribute("l2", axes=[2], keepdims=1)),
        "axis of L2": attribute("l2", axes=[1]),
        "axis of LogSoftmax": attribute("c", axis=1),
        "Softmax for LogSoftmax": operator("c", "Softmax"),
        "log of sum": both(operator("d", "ReduceLogSum"), attribute("d", axes=[2], keepdims=0)),
        "shift dropped": operands("b", "n1", "n1"),
        "Div for Mul": operator("n1", "Div"),
        "swapped operands of Div": operands("u", "l3", "x"),
    },
}

_EQUAL = frozenset({"bk"})
"""Softmax does not see what is added to all keys alike."""
for base, weights in SIZES.items():
    for weight in sorted(weights.keys() - _EQUAL):
        WRONG[base][f"one weight of {weight}"] = constant(weight, _one_weight)
WRONG["image"]["all of dw"] = constant("dw", _scaled)
