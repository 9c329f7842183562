"""What OpenVINO's CPU kernels may be off by, beyond a last place.

Measured with openvino 2026.4 (AVX2, one thread, float32 pinned) against float64 on sweeps of 2e5 points for each range,
December 2026, and doubled: `places` in units of u|y|, `absolute` in units of u = 2^-24. Several of its activations are
approximations with an absolute error. Operators that are not listed were within a last place, or were not swept.
"""

from __future__ import annotations

from collections.abc import Mapping

from trueport.adapters.float64.replay.rounding import Budget

BUDGETS: Mapping[str, Budget] = {
    "Sigmoid": Budget(places=10, absolute=0.5),
    "Tanh": Budget(places=1, absolute=0.5),
    "Erf": Budget(places=1, absolute=17.5),
    "Exp": Budget(places=11, absolute=0.0),
    "Atan": Budget(places=1, absolute=0.5),
    "Asin": Budget(places=1, absolute=0.5),
    "Softplus": Budget(places=5, absolute=256.0),
    "Mish": Budget(places=3, absolute=33.5),
    "Gelu": Budget(places=5, absolute=9.0),
    "HardSwish": Budget(places=2, absolute=2.0),
    "HardSigmoid": Budget(places=1, absolute=0.5),
    "Elu": Budget(places=1, absolute=3.5),
    "Celu": Budget(places=1, absolute=3.5),
    "Selu": Budget(places=4, absolute=2.0),
    "Softmax": Budget(places=10, absolute=0.5),
    "LogSoftmax": Budget(places=6, absolute=6.5),
    "Sinh": Budget(places=3, absolute=0.5),
    "Cosh": Budget(places=2, absolute=0.0),
    "Acos": Budget(places=2, absolute=0.0),
    "Softsign": Budget(places=2, absolute=0.0),
    "Asinh": Budget(places=3, absolute=0.0),
    "Acosh": Budget(places=3, absolute=0.0),
    "Atanh": Budget(places=3, absolute=0.0),
}
