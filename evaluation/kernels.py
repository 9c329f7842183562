"""What ONNX Runtime's kernels are off by, one operator at a time, against float64 on sweeps of float32 inputs.

The truth comes from NumPy and SciPy in double precision on exactly the same inputs. What a kernel may be off by in the
arithmetic lane stands in `trueport/adapters/runtimes/onnxruntime_budgets.py`; the task shows how much of it is used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from onnx import TensorProto, helper
from scipy import special

from evaluation.oracle_report import fill
from evaluation.wording import circumstances, machine, number, table
from trueport.adapters.runtimes.onnxruntime_budgets import BUDGETS

Array = NDArray[Any]

POINTS = 200_000
UNIT = 2.0**-24
_EXPLANATION = Path(__file__).parents[1] / "docs" / "explanation" / "oracle.md"
_EVERYWHERE = ((-0.01, 0.01), (-1, 1), (-10, 10), (-30, 30), (-88, 88))


def _softplus(x: Array) -> Array:
    return np.logaddexp(0.0, x)


def _selu(x: Array) -> Array:
    alpha, gamma = 1.67326319217681884765625, 1.05070102214813232421875
    return gamma * np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))


def _elu(x: Array) -> Array:
    return np.where(x > 0, x, np.expm1(np.minimum(x, 0)))


TRUTHS: dict[str, tuple[Callable[[Array], Array], Sequence[tuple[float, float]]]] = {
    "Sigmoid": (special.expit, _EVERYWHERE),
    "Tanh": (np.tanh, _EVERYWHERE),
    "Erf": (special.erf, _EVERYWHERE),
    "Exp": (np.exp, ((-0.01, 0.01), (-1, 1), (-10, 10), (-80, 80))),
    "Log": (np.log, ((1e-6, 1e-3), (0.5, 2), (1, 100), (1e3, 1e8))),
    "Sin": (np.sin, ((-0.01, 0.01), (-3, 3), (-100, 100), (-1e4, 1e4))),
    "Cos": (np.cos, ((-0.01, 0.01), (-3, 3), (-100, 100), (-1e4, 1e4))),
    "Atan": (np.arctan, _EVERYWHERE),
    "Asin": (np.arcsin, ((-0.01, 0.01), (-0.5, 0.5), (-1, 1))),
    "Softplus": (_softplus, _EVERYWHERE),
    "Mish": (lambda x: x * np.tanh(_softplus(x)), _EVERYWHERE),
    "Gelu": (lambda x: x * special.ndtr(x), _EVERYWHERE),
    "HardSwish": (lambda x: x * np.clip(x / 6 + 0.5, 0, 1), _EVERYWHERE),
    "HardSigmoid": (lambda x: np.clip(float(np.float32(0.2)) * x + 0.5, 0, 1), _EVERYWHERE),
    "Elu": (_elu, _EVERYWHERE),
    "Celu": (_elu, _EVERYWHERE),
    "Selu": (_selu, _EVERYWHERE),
    "Softmax": (lambda x: special.softmax(x, axis=-1), _EVERYWHERE),
    "LogSoftmax": (lambda x: special.log_softmax(x, axis=-1), _EVERYWHERE),
}
"""Operator -> its function in float64, and the ranges that are swept."""


def items() -> Iterator[str]:
    """Returns the names of the operators."""
    yield from TRUTHS


def measure(key: str) -> dict[str, Any]:
    """Returns the worst errors of one kernel, in units in the last place and in units of 2^-24."""
    truth, ranges = TRUTHS[key]
    session, budget = _session(key), BUDGETS[key]
    rng = np.random.default_rng(0)
    used, places, absolute = [], [], []
    for low, high in ranges:
        x = rng.uniform(low, high, (POINTS // 50, 50)).astype(np.float32)
        exact = truth(x.astype(np.float64))
        error = np.abs(session.run(None, {"x": x})[0].astype(np.float64) - exact) / UNIT
        # Half a last place, and what underflows, is rounding and no fault of a kernel.
        excess = np.maximum(error - np.abs(exact) - 2.0**-126 / UNIT, 0.0)
        used.append(float((excess / (budget.places * np.abs(exact) + budget.absolute + 1e-300)).max()))
        far = np.abs(exact) > 0.01
        places.append(float((error[far] / np.abs(exact)[far]).max(initial=0.0)))
        absolute.append(float(error.max()))
    return {
        "used": max(used), "places": max(places), "absolute": max(absolute), "regimes": len(ranges),
        "budget": {"places": budget.places, "absolute": budget.absolute}, "machine": machine(),
    }  # fmt: skip


def _session(op_type: str) -> onnxruntime.InferenceSession:
    value = [helper.make_tensor_value_info(name, TensorProto.FLOAT, (None, None)) for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node(op_type, ["x"], ["y"])], op_type, value[:1], value[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(model.SerializeToString(), settings, providers=["CPUExecutionProvider"])


def write_up(records: list[dict[str, Any]], folder: Path) -> None:
    """Writes the table into the folder and into the explanation."""
    if not records:
        return
    head = ("operator", "largest error, units of u|y| where |y| > 0.01", "largest error, units of u",
            "budget", "share of the budget used")  # fmt: skip
    text = (
        f"{circumstances(records)} {POINTS:,} float32 inputs for each of several ranges, against float64; "
        "u = 2^-24, and half a last place is u|y|. The budget is what the arithmetic lane allows a kernel beyond "
        "rounding; the kernels of LSTM, GRU, RNN and of fused activations are not swept here. Over a wide range a "
        "Softmax loses up to u|x - max| to its own subtraction, which the measured floor holds already.\n\n"
        f"{table(head, [_row(record) for record in records])}"
    )
    (folder / "README.md").write_text(f"# Kernels of ONNX Runtime\n\n{text}\n", encoding="utf-8")
    explanation = _EXPLANATION.read_text(encoding="utf-8")
    _EXPLANATION.write_text(fill(explanation, "budgets", text), encoding="utf-8")


def _row(record: dict[str, Any]) -> tuple[str, ...]:
    m = record["measured"]
    budget = f"{m['budget']['places']:g} u|y| + {m['budget']['absolute']:g} u"
    share = "beyond it" if m["used"] > 1 else f"{m['used']:.0%}"
    return record["key"], number(m["places"], 1), number(m["absolute"], 1), budget, share
