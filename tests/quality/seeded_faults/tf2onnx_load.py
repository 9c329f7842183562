"""Faults while variables become constants and while TensorFlow optimizes the frozen graph."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from tests.quality.seeded_faults.fault import LOAD_MODEL
from tests.quality.seeded_faults.tf2onnx_fault import TensorFlowFault, acting, replacing, returning
from tests.quality.seeded_faults.tf2onnx_subjects import arithmetic, network

_LOADER = "tf2onnx.tf_loader"


def _change_weights(definition: Any, change: Callable[[np.ndarray], np.ndarray]) -> None:
    import tensorflow as tf

    for node in definition.node:
        if node.op == "Const" and node.attr["dtype"].type == tf.float32.as_datatype_enum:
            value = tf.make_ndarray(node.attr["value"].tensor)
            node.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(change(np.asarray(value))))


def _round(definition: Any) -> None:
    _change_weights(definition, lambda value: value.astype(np.float16).astype(np.float32))


def _zero_bias(definition: Any) -> None:
    _change_weights(definition, lambda value: value * 0 if value.shape == (4,) else value)


def _first(definition: Any, operator: str) -> Any:
    return next(node for node in definition.node if node.op == operator)


def _turn(definition: Any) -> None:
    node = _first(definition, "Sub")
    node.input[0], node.input[1] = node.input[1], node.input[0]


def _untranspose(definition: Any) -> None:
    _first(definition, "MatMul").attr["transpose_b"].b = False


def _lose_epsilon(definition: Any) -> None:
    epsilon = np.float32(0.1)
    _change_weights(definition, lambda value: value / 100 if value.shape == () and value == epsilon else value)


@contextmanager
def _stale_variable() -> Iterator[None]:
    """Freezes the bias as it was before it was assigned to."""

    def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
        def freeze(function: Any, *args: Any, **kwargs: Any) -> Any:
            bias = next(v for v in function.graph.variables if v.shape.rank == 1)
            present = bias.numpy()
            bias.assign(present * 0)
            try:
                return original(function, *args, **kwargs)
            finally:
                bias.assign(present)

        return freeze

    with replacing(_LOADER, "from_function", wrap):
        yield


def _wrong(
    name: str, function: str, edit: Callable[[Any], None], build: Callable[[], Any], note: str
) -> TensorFlowFault:
    return TensorFlowFault(
        f"{LOAD_MODEL}-{name}",
        LOAD_MODEL,
        "wrong-model",
        lambda: replacing(_LOADER, function, returning(edit)),
        build,
        note,
    )


FAULTS = (
    TensorFlowFault(
        "load-model-stale-variable", LOAD_MODEL, "wrong-model", _stale_variable, arithmetic, "an update is lost"
    ),
    _wrong("float16-weights", "fix_freezing_errors_part2", _round, network, "weights are rounded to float16"),
    _wrong(
        "lost-epsilon",
        "fix_freezing_errors_part2",
        _lose_epsilon,
        network,
        "the epsilon of a normalization is a hundredth",
    ),
    _wrong("turned-subtraction", "tf_optimize", _turn, arithmetic, "the inputs of a node change places"),
    _wrong("untransposed-product", "tf_optimize", _untranspose, arithmetic, "a flag of a square product is lost"),
    _wrong("dropped-bias", "tf_optimize", _zero_bias, arithmetic, "a bias is folded to zero"),
    acting(LOAD_MODEL, "raises", _LOADER, "convert_variables_to_constants_v2", arithmetic, "freezing raises"),
    acting(LOAD_MODEL, "raises", _LOADER, "tf_optimize", network, "TensorFlow's optimizer raises"),
    acting(LOAD_MODEL, "segfaults", _LOADER, "tf_optimize", arithmetic, "TensorFlow's optimizer crashes"),
)
