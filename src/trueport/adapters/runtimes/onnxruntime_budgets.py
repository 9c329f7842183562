"""What ONNX Runtime's CPU kernels may be off by, beyond a last place; measured, see docs/explanation/oracle.md."""

from __future__ import annotations

from collections.abc import Mapping

from trueport.adapters.float64.onnx.rounding import Budget

BUDGETS: Mapping[str, Budget] = {
    "Sigmoid": Budget(places=4, absolute=1.0),
    "Tanh": Budget(places=4),
    "Erf": Budget(places=4),
    "Gelu": Budget(places=4, absolute=1.0),
    "LSTM": Budget(places=8, absolute=4.0),
    "GRU": Budget(places=8, absolute=4.0),
    "RNN": Budget(places=8, absolute=4.0),
}
