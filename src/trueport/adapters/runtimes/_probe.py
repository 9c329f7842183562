"""Which operator a runtime has no kernel for, found by asking it about one node at a time.

A runtime says why it refuses a file in words, and words decide nothing here. A model of a single node that ONNX's
checker accepts and the runtime refuses shows that the runtime lacks the operator with these types.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import onnx

from trueport.onnxgraph.nesting import bodies, subgraphs

LARGEST_FILE_BYTES = 2**31 - 2**24
MOST_PROBES = 400
"""Different nodes that are tried; a refusal costs milliseconds."""
_SMALL = 4096
"""Constants up to this many bytes are given to the node as such: some kernels need their shapes at load time."""


def lacking(path: Path, refuses: Callable[[onnx.ModelProto], bool]) -> str | None:
    """Returns the operator (or the opset) that the runtime lacks, None where no single node is refused.

    Args:
        path: of a file that the runtime refused.
        refuses: whether the runtime refuses a model.
    """
    try:
        if path.stat().st_size > LARGEST_FILE_BYTES:
            return None
        model = onnx.shape_inference.infer_shapes(onnx.load(str(path), load_external_data=False))
        onnx.checker.check_model(model, full_check=False)
    except Exception:  # noqa: BLE001 - a model that is not valid says nothing about kernels
        return None
    if _valid(_opsets_alone(model)) and refuses(_opsets_alone(model)):
        return ", ".join(f"opset {o.version} of {o.domain or 'ai.onnx'}" for o in model.opset_import)
    for number, (node, single) in enumerate(_single_nodes(model)):
        if number == MOST_PROBES:
            return None
        if _valid(single) and refuses(single):
            return node.op_type if node.domain in ("", "ai.onnx") else f"{node.domain}.{node.op_type}"
    return None


def _valid(model: onnx.ModelProto) -> bool:
    try:
        onnx.checker.check_model(model, full_check=True)
    except Exception:  # noqa: BLE001 - the checker raises whatever its parser meets
        return False
    return True


def _opsets_alone(model: onnx.ModelProto) -> onnx.ModelProto:
    """A model that only hands its input on, with the versions of the model."""
    value = onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1])
    result = onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [1])
    identity = onnx.helper.make_node("Identity", ["x"], ["y"])
    return _around(model, [identity], [value], [result], [])


def _single_nodes(model: onnx.ModelProto) -> Iterator[tuple[onnx.NodeProto, onnx.ModelProto]]:
    """Yields each different node whose types are known, in a model of its own.

    Those with nested graphs come last: what they contain has then been tried already.
    """
    types: dict[str, onnx.ValueInfoProto] = {}
    constants: dict[str, onnx.TensorProto] = {}
    every = [body for body in bodies(model) if body.graph is not None]
    for body in every:
        assert body.graph is not None
        types.update({v.name: v for v in (*body.graph.value_info, *body.graph.input, *body.graph.output)})
        constants.update({t.name: t for t in body.graph.initializer})
    seen: set[tuple[object, ...]] = set()
    nodes = [node for body in every for node in body.nodes]
    for node in sorted(nodes, key=lambda node: any(True for _ in subgraphs(node))):
        single = _single(model, node, types, constants)
        if single is None:
            continue
        inputs = tuple(v.type.SerializeToString(deterministic=True) for v in single.graph.input)
        key = (
            node.domain,
            node.op_type,
            *(a.SerializeToString(deterministic=True) for a in node.attribute),
            inputs,
        )
        if key not in seen:
            seen.add(key)
            yield node, single


def _single(
    model: onnx.ModelProto,
    node: onnx.NodeProto,
    types: Mapping[str, onnx.ValueInfoProto],
    constants: Mapping[str, onnx.TensorProto],
) -> onnx.ModelProto | None:
    inputs: list[onnx.ValueInfoProto] = []
    initializers: list[onnx.TensorProto] = []
    for name in dict.fromkeys(n for n in node.input if n):
        tensor = constants.get(name)
        external = tensor is not None and tensor.data_location == onnx.TensorProto.EXTERNAL
        if tensor is not None and not external and tensor.ByteSize() <= _SMALL:
            initializers.append(tensor)
        elif tensor is not None:
            inputs.append(onnx.helper.make_tensor_value_info(name, tensor.data_type, list(tensor.dims)))
        elif name in types:
            inputs.append(types[name])
        else:
            return None
    outputs = [types[name] for name in node.output if name in types]
    if len(outputs) < sum(1 for name in node.output if name):
        return None
    return _around(model, [node], inputs, outputs, initializers)


def _around(
    model: onnx.ModelProto,
    nodes: list[onnx.NodeProto],
    inputs: list[onnx.ValueInfoProto],
    outputs: list[onnx.ValueInfoProto],
    initializers: list[onnx.TensorProto],
) -> onnx.ModelProto:
    graph = onnx.helper.make_graph(nodes, "one_node", inputs, outputs, initializers)
    made = onnx.helper.make_model(
        graph, ir_version=model.ir_version, opset_imports=model.opset_import, functions=model.functions
    )
    assert isinstance(made, onnx.ModelProto)
    return made
