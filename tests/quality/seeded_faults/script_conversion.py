"""Faults of the TorchScript exporter's symbolic functions, planted where one is looked up for an operator."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch.nn import functional
from torch.onnx._internal.torchscript_exporter.registration import SymbolicRegistry

from tests.quality.seeded_faults.fault import (
    ACTIONS,
    DEADLY,
    NODE_CONVERSION,
    SCRIPT,
    SeededFault,
    replaced,
)
from tests.quality.seeded_faults.subjects import NETWORK, of, with_linear

Symbolic = Callable[..., Any]


@dataclass(frozen=True)
class _Group:
    """One symbolic function for all opsets, in place of the group of an operator's functions."""

    original: Any
    change: Callable[[Symbolic], Symbolic | None]

    def get(self, opset: int) -> Symbolic | None:
        return self.change(self.original.get(opset))

    def get_min_supported(self) -> int:
        return 9


def _translating(operator: str, change: Callable[[Symbolic], Symbolic | None]) -> Callable[[], Any]:
    """Plants `change(symbolic)` for the symbolic function of `operator`."""

    def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
        def get_function_group(self: SymbolicRegistry, name: str) -> Any:
            group = original(self, name)
            return _Group(group, change) if name == operator else group

        return get_function_group

    return partial(replaced, SymbolicRegistry, "get_function_group", wrap)


def _constant(g: Any, value: float) -> Any:
    return g.op("Constant", value_t=torch.tensor(value))


def _quick_gelu(g: Any, x: Any, *_: Any) -> Any:
    return g.op("Mul", x, g.op("Sigmoid", g.op("Mul", x, _constant(g, 1.702))))


def _first_axis(g: Any, x: Any, *_: Any) -> Any:
    return g.op("Softmax", x, axis_i=0)


def _truncation(g: Any, x: Any) -> Any:
    return g.op("Mul", g.op("Sign", x), g.op("Floor", g.op("Abs", x)))


def _no_permutation(g: Any, x: Any, _: Any) -> Any:
    return g.op("Transpose", x, perm_i=[0, 1, 2])


def _larger_eps(g: Any, x: Any, shape: Any, weight: Any, bias: Any, *_: Any) -> Any:
    return g.op("LayerNormalization", x, weight, bias, epsilon_f=1e-4, axis_i=-1)


def _no_bias(g: Any, x: Any, weight: Any, _: Any) -> Any:
    return g.op("MatMul", x, g.op("Transpose", weight, perm_i=[1, 0]))


def _one_slope(g: Any, x: Any, *_: Any) -> Any:
    return g.op("LeakyRelu", x, alpha_f=0.01)


def _broadcast_result(original: Symbolic) -> Symbolic:
    def translate(g: Any, x: Any, *args: Any) -> Any:
        return g.op("Add", original(g, x, *args), g.op("Mul", x, _constant(g, 0.0)))

    return translate


def _acting(action: str) -> Callable[[Symbolic], Symbolic]:
    def change(original: Symbolic) -> Symbolic:
        def translate(*args: Any, **kwargs: Any) -> Any:
            ACTIONS[action]()
            return original(*args, **kwargs)

        return translate

    return change


def _wrong(name: str, operator: str, symbolic: Symbolic, build: Any, note: str) -> SeededFault:
    plant = _translating(operator, lambda _: symbolic)
    return SeededFault(f"script-conversion-{name}", SCRIPT, NODE_CONVERSION, "wrong-model", plant, build, note)


FAULTS = (
    _wrong("quick-gelu", "aten::gelu", _quick_gelu, NETWORK, "GELU becomes x sigmoid(1.702 x)"),
    _wrong(
        "softmax-axis",
        "aten::softmax",
        _first_axis,
        of(lambda x: torch.softmax(x, -1), (8, 8)),
        "Softmax is translated for the first axis",
    ),
    _wrong(
        "floor-truncates",
        "aten::floor",
        _truncation,
        of(lambda x: torch.floor(x) / 4, (4, 16), scale=3.0),
        "Floor rounds toward zero",
    ),
    _wrong(
        "permutation-lost",
        "aten::permute",
        _no_permutation,
        of(lambda x: x.permute(2, 0, 1).cumsum(0), (4, 4, 4)),
        "The permutation of a cube is forgotten",
    ),
    _wrong("layer-norm-eps", "aten::layer_norm", _larger_eps, NETWORK, "eps is ten times too large"),
    _wrong(
        "bias-lost",
        "aten::linear",
        _no_bias,
        with_linear(lambda f, x: torch.tanh(f(x)), (4, 8)),
        "A linear layer loses its bias",
    ),
    _wrong(
        "slope-ignored",
        "aten::leaky_relu",
        _one_slope,
        of(lambda x: functional.leaky_relu(x, 0.011), (4, 8)),
        "The slope of a leaky ReLU is ignored",
    ),
    SeededFault(
        "script-conversion-result-broadcast",
        SCRIPT,
        NODE_CONVERSION,
        "wrong-model",
        _translating("aten::sum", _broadcast_result),
        of(lambda x: x.sum(0), (4, 3)),
        "The result has shape (4, 3) for (3,)",
    ),
    SeededFault(
        "script-conversion-missing",
        SCRIPT,
        NODE_CONVERSION,
        "crash",
        _translating("aten::gelu", lambda original: None),
        NETWORK,
        "There is no symbolic function of GELU",
    ),
    *(
        SeededFault(
            f"script-conversion-{action}",
            SCRIPT,
            NODE_CONVERSION,
            "crash",
            _translating("aten::gelu", _acting(action)),
            NETWORK,
            f"The symbolic function of GELU {action}",
            ends_process=action in DEADLY,
        )
        for action in ACTIONS
    ),
)
