"""Every transcendental kernel against mpmath, to 1e-14 relative, tails included."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath as mp
import numpy as np
import pytest

from tests.unit.adapters.float64.onnx_models import run_one

TOLERANCE = 1e-14
mp.mp.dps = 60


def _f32(value: float) -> Any:
    return mp.mpf(float(np.float32(value)))


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + mp.exp(-x)) if x > 0 else mp.exp(x) / (1 + mp.exp(x))


def _gelu_tanh(x: Any) -> Any:
    return x * _sigmoid(2 * mp.sqrt(2 / mp.pi) * (x + mp.mpf("0.044715") * x**3))


_RNG = np.random.default_rng(0)
WIDE = np.concatenate([
    _RNG.uniform(-40, 40, 120), _RNG.normal(size=80), _RNG.normal(size=30) * 1e-8, _RNG.uniform(-700, 700, 40),
    10.0 ** _RNG.uniform(-300, -5, 20),
])  # fmt: skip
POSITIVE = np.concatenate([10.0 ** _RNG.uniform(-300, 300, 100), _RNG.uniform(0.5, 2, 100)])
UNIT = np.concatenate([_RNG.uniform(-1, 1, 150), 1 - 10.0 ** _RNG.uniform(-15, -1, 40), _RNG.normal(size=30) * 1e-9])
# The exponent of the tanh approximation grows with x^3 and its rounding with it; below -10 float32 underflows anyway.
NEAR = np.concatenate([_RNG.uniform(-8, 40, 150), _RNG.normal(size=100)])

CASES: dict[str, tuple[str, dict[str, Any], np.ndarray, Callable[[Any], Any]]] = {
    "exp": ("Exp", {}, WIDE, mp.exp),
    "log": ("Log", {}, POSITIVE, mp.log),
    "sqrt": ("Sqrt", {}, POSITIVE, mp.sqrt),
    "reciprocal": ("Reciprocal", {}, POSITIVE, lambda x: 1 / x),
    "erf": ("Erf", {}, WIDE, mp.erf),
    "tanh": ("Tanh", {}, WIDE, mp.tanh),
    "sigmoid": ("Sigmoid", {}, WIDE, _sigmoid),
    "softplus": ("Softplus", {}, WIDE, lambda x: mp.log1p(mp.exp(x))),
    "gelu": ("Gelu", {}, WIDE, lambda x: x * mp.erfc(-x / mp.sqrt(2)) / 2),
    "gelu-tanh": ("Gelu", {"approximate": "tanh"}, NEAR, _gelu_tanh),
    "mish": ("Mish", {}, WIDE, lambda x: x * mp.tanh(mp.log1p(mp.exp(x)))),
    "elu": ("Elu", {}, WIDE, lambda x: x if x > 0 else mp.expm1(x)),
    "elu-alpha": ("Elu", {"alpha": 0.3}, WIDE, lambda x: x if x > 0 else _f32(0.3) * mp.expm1(x)),
    "celu": ("Celu", {"alpha": 1.5}, WIDE, lambda x: x if x > 0 else mp.mpf(1.5) * mp.expm1(x / mp.mpf(1.5))),
    "selu": (
        "Selu", {}, WIDE,
        lambda x: _f32(1.05070102214813232421875) * (x if x > 0 else _f32(1.67326319217681884765625) * mp.expm1(x)),
    ),
    "leaky-relu": ("LeakyRelu", {}, WIDE, lambda x: x if x > 0 else _f32(0.01) * x),
    "hard-sigmoid": ("HardSigmoid", {}, WIDE, lambda x: max(0, min(1, _f32(0.2) * x + _f32(0.5)))),
    "hard-swish": ("HardSwish", {}, WIDE, lambda x: x * max(0, min(1, x / 6 + mp.mpf("0.5")))),
    "softsign": ("Softsign", {}, WIDE, lambda x: x / (1 + abs(x))),
    "swish": ("Swish", {"alpha": 1.5, "opset": 24}, NEAR, lambda x: x * _sigmoid(mp.mpf(1.5) * x)),
    "sin": ("Sin", {}, WIDE, mp.sin),
    "cos": ("Cos", {}, WIDE, mp.cos),
    "tan": ("Tan", {}, WIDE, mp.tan),
    "asin": ("Asin", {}, UNIT, mp.asin),
    "acos": ("Acos", {}, UNIT, mp.acos),
    "atan": ("Atan", {}, WIDE, mp.atan),
    "sinh": ("Sinh", {}, WIDE, mp.sinh),
    "cosh": ("Cosh", {}, WIDE, mp.cosh),
    "asinh": ("Asinh", {}, WIDE, mp.asinh),
    "acosh": ("Acosh", {}, 1.0 + POSITIVE, mp.acosh),
    "atanh": ("Atanh", {}, UNIT, mp.atanh),
}  # fmt: skip


def _worst(actual: np.ndarray, expected: list[Any]) -> float:
    worst = 0.0
    for got, want in zip(actual.tolist(), expected, strict=True):
        if not 1e-300 < abs(want) < 1e300:  # where float64 itself has no full precision
            continue
        worst = max(worst, float(abs(mp.mpf(got) - want) / abs(want)))
    return worst


@pytest.mark.parametrize("name", CASES)
def test_kernel_agrees_with_mpmath(name: str) -> None:
    op_type, options, x, function = CASES[name]
    (y,) = run_one(op_type, x, **options)
    assert _worst(y, [function(mp.mpf(value)) for value in x.tolist()]) < TOLERANCE


@pytest.mark.parametrize("scale", [0.1, 1.0, 20.0])
def test_softmax_family_agrees_with_mpmath(scale: float) -> None:
    x = np.random.default_rng(1).normal(size=24) * scale
    exact = [mp.mpf(value) for value in x.tolist()]
    total = mp.fsum(mp.exp(value) for value in exact)
    (soft,), (logs,) = run_one("Softmax", x), run_one("LogSoftmax", x)
    (summed,) = run_one("ReduceLogSumExp", x, keepdims=0)
    assert _worst(soft, [mp.exp(value) / total for value in exact]) < TOLERANCE
    assert _worst(logs, [value - mp.log(total) for value in exact]) < TOLERANCE
    assert _worst(summed.reshape(1), [mp.log(total)]) < TOLERANCE


def test_log_softmax_of_a_dominating_element_is_not_zero() -> None:
    (logs,) = run_one("LogSoftmax", np.array([0.0, -60.0]))
    assert _worst(logs[:1], [-mp.log1p(mp.exp(-60))]) < TOLERANCE


@pytest.mark.parametrize("mean", [0.0, 1e4])
def test_normalizations_agree_with_mpmath(mean: float) -> None:
    x = np.random.default_rng(2).normal(size=50) + mean
    exact = [mp.mpf(value) for value in x.tolist()]
    center = mp.fsum(exact) / 50
    root = mp.sqrt(mp.fsum((value - center) ** 2 for value in exact) / 50 + _f32(1e-5))
    (y,) = run_one("LayerNormalization", x.reshape(1, 50), np.ones(50))
    # The mean cannot be known better than to its own last place.
    assert np.max(np.abs(y[0] - [float((value - center) / root) for value in exact])) < 1e-14 + 2e-16 * mean


def test_power_and_windows_agree_with_mpmath() -> None:
    base, exponent = np.abs(WIDE[:100]), np.random.default_rng(3).uniform(-8, 8, 100)
    (y,) = run_one("Pow", base, exponent)
    pairs = zip(base.tolist(), exponent.tolist(), strict=True)
    assert _worst(y, [mp.mpf(b) ** mp.mpf(e) for b, e in pairs]) < TOLERANCE
    (window,) = run_one("HannWindow", np.array(9))
    want = [mp.sin(mp.pi * i / 9) ** 2 for i in range(9)]
    assert np.max(np.abs(window - [float(value) for value in want])) < TOLERANCE
