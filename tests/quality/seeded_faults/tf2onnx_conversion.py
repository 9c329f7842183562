"""Faults in the handlers that translate operators, and in the rewriters that run before them."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
from onnx import TensorProto

from tests.quality.seeded_faults.fault import ACTIONS, DEADLY, NODE_CONVERSION
from tests.quality.seeded_faults.tf2onnx_fault import TensorFlowFault, acting, replacing, returning
from tests.quality.seeded_faults.tf2onnx_subjects import arithmetic, network

Handler = Callable[..., None]


def _handler(operator: str, wrap: Callable[[Handler], Handler]) -> AbstractContextManager[None]:
    """Replaces the handler of one TensorFlow operator."""

    def change(mapping: dict[str, Any]) -> dict[str, Any]:
        function, settings = mapping[operator]
        return {**mapping, operator: (wrap(function), settings)}

    return replacing("tf2onnx.handler", "tf_op.create_mapping", returning(change))


def _then(edit: Callable[[Any, Any], None]) -> Callable[[Handler], Handler]:
    def wrap(original: Handler) -> Handler:
        def handle(graph: Any, node: Any, **settings: Any) -> None:
            original(graph, node, **settings)
            edit(graph, node)

        return handle

    return wrap


def _instead(action: str) -> Callable[[Handler], Handler]:
    def wrap(original: Handler) -> Handler:
        def handle(graph: Any, node: Any, **settings: Any) -> None:
            ACTIONS[action]()
            original(graph, node, **settings)

        return handle

    return wrap


def _set(name: str, value: Any) -> Callable[[Any, Any], None]:
    return lambda _, node: node.set_attr(name, value)


def _turn(graph: Any, node: Any) -> None:
    graph.replace_inputs(node, list(node.input)[::-1])


def _pad_before(_: Any, node: Any) -> None:
    pads = node.get_attr_value("pads")
    if pads is not None:
        node.set_attr("pads", [*pads[2:], *pads[:2]])


def _scale_constants(operations: list[Any]) -> None:
    for node in operations:
        if node.is_const() and node.get_tensor_value(as_list=False).ndim == 4:
            node.set_tensor_value(node.get_tensor_value(as_list=False) * np.float32(1.01))


def _wrong(
    name: str, operator: str, edit: Callable[[Any, Any], None], build: Callable[[], Any], note: str
) -> TensorFlowFault:
    return TensorFlowFault(
        f"{NODE_CONVERSION}-{name}",
        NODE_CONVERSION,
        "wrong-model",
        lambda: _handler(operator, _then(edit)),
        build,
        note,
    )


def _failing(operator: str, action: str, build: Callable[[], Any], note: str) -> TensorFlowFault:
    return TensorFlowFault(
        f"{NODE_CONVERSION}-{operator.lower()}-{action}",
        NODE_CONVERSION,
        "crash",
        lambda: _handler(operator, _instead(action)),
        build,
        note,
        ends_process=action in DEADLY,
    )


FAULTS = (
    _wrong("slope-lost", "LeakyRelu", _set("alpha", 0.01), network, "an attribute gets its default"),
    _wrong("padded-before", "Conv2D", _pad_before, network, "uneven padding goes to the other end"),
    _wrong("other-axis", "Softmax", _set("axis", 0), arithmetic, "an axis is wrong"),
    _wrong("turned-subtraction", "Sub", _turn, arithmetic, "operands change places"),
    _wrong("turned-concatenation", "ConcatV2", _turn, arithmetic, "what is joined changes places"),
    _wrong("other-operator", "Max", lambda _, node: setattr(node, "type", "ReduceMin"), arithmetic, "min for max"),
    TensorFlowFault(
        f"{NODE_CONVERSION}-rewriter-scales",
        NODE_CONVERSION,
        "wrong-model",
        lambda: replacing("tf2onnx.tfonnx", "rewrite_conv2d_with_pad", returning(_scale_constants)),
        network,
        "a rewriter changes a kernel",
    ),
    TensorFlowFault(
        f"{NODE_CONVERSION}-narrow-cast",
        NODE_CONVERSION,
        "crash",
        lambda: _handler("Cast", _then(_set("to", TensorProto.INT32))),
        arithmetic,
        "a cast to another type than the output is declared with",
    ),
    _failing("ConcatV2", "raises", arithmetic, "a handler raises and leaves its node as it was"),
    _failing("Max", "raises", arithmetic, "a handler raises where ONNX has another operator of that name"),
    acting(NODE_CONVERSION, "raises", "tf2onnx.tfonnx", "tensorflow_onnx_mapping", network, "the translation raises"),
    _failing("Conv2D", "exits", network, "a handler ends the process"),
)
