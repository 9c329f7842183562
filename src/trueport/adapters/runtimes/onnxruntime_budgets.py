"""What ONNX Runtime's CPU kernels may be off by, beyond a last place.

Measured with onnxruntime 1.32 (AVX2, one thread) against float64 on sweeps of 2e5 points per regime, November 2026, and
doubled: `places` in units of u|y|, `absolute` in units of u = 2^-24. The sweeps stand in docs/explanation/oracle.md.
"""

from __future__ import annotations

from collections.abc import Mapping

from trueport.adapters.float64.replay.rounding import Budget

BUDGETS: Mapping[str, Budget] = {
    "Sigmoid": Budget(places=8, absolute=3.0),
    "Tanh": Budget(places=11),
    "Erf": Budget(places=3),
    "Exp": Budget(places=3),
    "Log": Budget(places=8),
    "Pow": Budget(places=4),
    "Sin": Budget(places=6, absolute=3.0),
    "Cos": Budget(places=6, absolute=3.0),
    "Atan": Budget(places=8),
    "Asin": Budget(places=16),
    "Softplus": Budget(places=11),
    "Mish": Budget(places=17),
    "Gelu": Budget(places=18, absolute=3.0),
    "QuickGelu": Budget(places=14, absolute=50.0),
    "Swish": Budget(places=14, absolute=80.0),
    "HardSwish": Budget(places=4, absolute=2.0),
    "HardSigmoid": Budget(places=3, absolute=2.0),
    "Elu": Budget(absolute=2.0),
    "Celu": Budget(absolute=2.0),
    "Selu": Budget(absolute=6.0),
    "Softmax": Budget(places=30),
    "LogSoftmax": Budget(places=12, absolute=12.0),
    "LSTM": Budget(places=8, absolute=13.0),
    "GRU": Budget(places=8, absolute=24.0),
    "RNN": Budget(places=8, absolute=100.0),
    # Its activation is a SiLU of its own; without one the sum's floor is all that it needs.
    "CausalConvWithState": Budget(places=9, absolute=100.0),
}
