"""Faults of the dynamo exporter's operator translations, planted where a translation is looked up for a node."""

from collections.abc import Callable
from typing import Any

import torch
from onnxscript import opset18 as op
from torch.nn import functional
from torch.onnx._internal.exporter import _dispatching

from tests.quality.seeded_faults.fault import (
    ACTIONS,
    DEADLY,
    DYNAMO,
    NODE_CONVERSION,
    SeededFault,
    replaced,
)
from tests.quality.seeded_faults.subjects import NETWORK, of, with_linear

Translation = Callable[..., Any]


def _translating(target: str, change: Callable[[Translation], Translation | None]) -> Callable[[], Any]:
    """Plants `change(translation)` for the translation of every operator whose name starts with `target`."""

    def wrap(original: Callable[..., tuple[Any, str]]) -> Callable[..., tuple[Any, str]]:
        def dispatch(node: torch.fx.Node, registry: Any) -> tuple[Any, str]:
            translation, message = original(node, registry)
            is_meant = translation is not None and str(node.target).startswith(target)
            return (change(translation), message) if is_meant else (translation, message)

        return dispatch

    return lambda: replaced(_dispatching, "dispatch", wrap)


def _tanh_gelu(original: Translation) -> Translation:
    return lambda x, approximate="none": original(x, approximate="tanh")


def _first_axis(original: Translation) -> Translation:
    return lambda x, dim, *args, **kwargs: original(x, 0, *args, **kwargs)


def _truncating_floor(original: Translation) -> Translation:
    return lambda x: op.Mul(op.Sign(x), op.Floor(op.Abs(x)))


def _identity_permutation(original: Translation) -> Translation:
    return lambda x, dims: op.Transpose(x, perm=sorted(dims))


def _larger_eps(original: Translation) -> Translation:
    def translate(x: Any, shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5, *rest: Any) -> Any:
        return original(x, shape, weight, bias, eps * 10, *rest)

    return translate


def _without_bias(original: Translation) -> Translation:
    return lambda x, weight, bias=None: op.MatMul(x, op.Transpose(weight, perm=[1, 0]))


def _broadcast_result(original: Translation) -> Translation:
    def translate(x: Any, *args: Any, **kwargs: Any) -> Any:
        return op.Add(original(x, *args, **kwargs), op.Mul(x, op.Constant(value_float=0.0)))

    return translate


def _one_slope(original: Translation) -> Translation:
    return lambda x, slope=0.01: op.LeakyRelu(x, alpha=0.01)


def _scaled(original: Translation) -> Translation:
    return lambda x, *args, **kwargs: op.Mul(original(x, *args, **kwargs), op.Constant(value_float=0.999))


def _acting(action: str) -> Callable[[Translation], Translation]:
    def change(original: Translation) -> Translation:
        def translate(*args: Any, **kwargs: Any) -> Any:
            ACTIONS[action]()
            return original(*args, **kwargs)

        return translate

    return change


def _wrong(name: str, plant: Any, build: Any, note: str) -> SeededFault:
    return SeededFault(f"dynamo-conversion-{name}", DYNAMO, NODE_CONVERSION, "wrong-model", plant, build, note)


FAULTS = (
    _wrong("gelu-by-tanh", _translating("aten.gelu", _tanh_gelu), NETWORK, "GELU is always translated by tanh"),
    _wrong(
        "softmax-axis",
        _translating("aten.softmax", _first_axis),
        of(lambda x: torch.softmax(x, -1), (8, 8)),
        "Softmax is always translated for the first axis",
    ),
    _wrong(
        "floor-truncates",
        _translating("aten.floor", _truncating_floor),
        of(lambda x: torch.floor(x) / 4, (4, 16), scale=3.0),
        "Floor rounds toward zero",
    ),
    _wrong(
        "permutation-lost",
        _translating("aten.permute", _identity_permutation),
        of(lambda x: x.permute(2, 0, 1).cumsum(0), (4, 4, 4)),
        "The permutation of a cube is forgotten",
    ),
    _wrong(
        "layer-norm-eps",
        _translating("aten.layer_norm", _larger_eps),
        NETWORK,
        "The eps of a layer norm is ten times too large: 4e-5 at unit variance",
    ),
    _wrong(
        "bias-lost",
        _translating("aten.linear", _without_bias),
        with_linear(lambda f, x: torch.tanh(f(x)), (4, 8)),
        "A linear layer loses its bias",
    ),
    _wrong(
        "result-broadcast",
        _translating("aten.sum.dim_IntList", _broadcast_result),
        of(lambda x: x.sum(0), (4, 3)),
        "The result has shape (4, 3) for (3,): verify=True passes it",
    ),
    _wrong(
        "slope-ignored",
        _translating("aten.leaky_relu", _one_slope),
        of(lambda x: functional.leaky_relu(x, 0.011), (4, 8)),
        "The slope of a leaky ReLU is ignored",
    ),
    _wrong(
        "pooling-scaled",
        _translating("aten.avg_pool2d", _scaled),
        of(lambda x: functional.avg_pool2d(x, 2), (1, 2, 8, 8)),
        "Means are a thousandth too small",
    ),
    SeededFault(
        "dynamo-conversion-missing",
        DYNAMO,
        NODE_CONVERSION,
        "crash",
        _translating("aten.gelu", lambda original: None),
        NETWORK,
        "There is no translation of GELU",
    ),
    *(
        SeededFault(
            f"dynamo-conversion-{action}",
            DYNAMO,
            NODE_CONVERSION,
            "crash",
            _translating("aten.gelu", _acting(action)),
            NETWORK,
            f"The translation of GELU {action}",
            ends_process=action in DEADLY,
        )
        for action in ACTIONS
    ),
)
