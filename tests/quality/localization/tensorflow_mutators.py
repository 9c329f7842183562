"""One node of a frozen TensorFlow graph made wrong."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import tensorflow as tf

from tests.quality.localization.bench import Bench
from tests.quality.localization.capture_faults import Site
from tests.quality.seeded_faults.fault import replaced
from trueport.adapters.converters import tf2onnx

_NEAR = {
    "Relu": "Elu", "Relu6": "Relu", "Tanh": "Sigmoid", "Sigmoid": "Tanh", "Mean": "Sum", "AddV2": "Sub", "Sub": "AddV2",
    "Rsqrt": "Sqrt", "Elu": "Selu", "Softplus": "Softsign",
}  # fmt: skip


def _swapped_operands(graph: Any, node: Any) -> bool:
    del graph
    if node.op not in ("Sub", "RealDiv", "SquaredDifference", "BatchMatMulV2", "Div") or len(node.input) < 2:
        return False
    first, second = node.input[:2]
    node.input[0], node.input[1] = second, first
    return node.op != "SquaredDifference"


def _near_operator(graph: Any, node: Any) -> bool:
    del graph
    if node.op not in _NEAR:
        return False
    node.op = _NEAR[node.op]
    return True


def _larger_epsilon(graph: Any, node: Any) -> bool:
    del graph
    if node.op != "FusedBatchNormV3":
        return False
    node.attr["epsilon"].f *= 1000
    return True


def _scaled_constant(graph: Any, node: Any) -> bool:
    """Gives this node alone a constant that is two per cent too large."""
    if node.op not in ("MatMul", "Conv2D", "BiasAdd", "AddV2", "Mul", "DepthwiseConv2dNative", "Sub"):
        return False
    made = {n.name: n for n in graph.node}
    for place, name in enumerate(node.input):
        holder = made.get(name.partition(":")[0])
        while holder is not None and holder.op == "Identity":
            holder = made.get(holder.input[0].partition(":")[0])
        if holder is None or holder.op != "Const" or holder.attr["dtype"].type != tf.float32.as_datatype_enum:
            continue
        value = tf.make_ndarray(holder.attr["value"].tensor)
        if not np.isfinite(value).all() or not value.any():
            continue
        new = graph.node.add()
        new.CopyFrom(holder)
        new.name = f"{node.name}/wrong_constant"
        new.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(value * np.float32(1.02)))
        node.input[place] = new.name
        return True
    return False


MUTATORS: dict[str, Callable[[Any, Any], bool]] = {
    "swapped-operands": _swapped_operands, "near-operator": _near_operator, "larger-epsilon": _larger_epsilon,
    "scaled-constant": _scaled_constant,
}  # fmt: skip


def sites(bench: Bench, number: int, mutator: str, seed: int) -> list[Site]:
    """Returns the nodes of the frozen graph that a mutator fits."""
    del seed
    definition = tf.compat.v1.GraphDef()
    definition.CopyFrom(getattr(tf2onnx, "_freeze")(bench.session.subject.model).definition)  # noqa: B009 - its step
    ran = {n.name: n for n in bench.run_of(bench.recorded[number]).nodes}
    found = []
    for node in list(definition.node):
        call = ran.get(node.name)
        operator = node.op
        if call is not None and MUTATORS[mutator](definition, node):
            found.append(Site(operator, call.name, call.outputs[0], partial(_freezing, node.name, mutator)))
    return found


def _freezing(name: str, mutator: str) -> AbstractContextManager[None]:
    def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
        def freeze(source: Any) -> Any:
            frozen = original(source)
            definition = tf.compat.v1.GraphDef()
            definition.CopyFrom(frozen.definition)
            node = next(n for n in definition.node if n.name == name)
            if not MUTATORS[mutator](definition, node):
                raise LookupError(f"{mutator} does not fit '{name}'")
            return replace(frozen, definition=definition)

        return freeze

    return replaced(tf2onnx, "_freeze", wrap)
