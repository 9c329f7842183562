"""Faults planted into `onnxscript-optimizer`, an ONNX model that meets all of them, and the stage of each.

The tool itself runs, with one of its functions replaced; faults of the file are made by the function that writes it.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import onnx
import onnx_ir as ir
import onnx_ir.passes.common as common
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper, parser
from onnxscript import rewriter
from onnxscript.optimizer import _constant_folding as folding

from tests.quality.seeded_faults.fault import (
    EXPORT,
    LOAD_MODEL,
    OPTIMIZATION,
    RUNTIME,
    VALIDATION,
    acting_first,
    raise_error,
    replaced,
)

CONVERTER = "onnxscript-optimizer"


@dataclass(frozen=True)
class OnnxFault:
    """A fault in one stage; `plant()` is active until its context ends."""

    name: str
    stage: str
    symptom: Literal["wrong-model", "crash"]
    plant: Callable[[], AbstractContextManager[None]]
    note: str


def model() -> onnx.ModelProto:
    """A model with weights, an attribute that matters, two subtractions and something to fold."""
    made = onnx.ModelProto()
    made.CopyFrom(
        parser.parse_model("""
        <ir_version: 8, opset_import: ["": 18]>
        network (float[4,6] x, float[4,6] z) => (float[4,3] p, float[4,6] d)
        <float[1] one = {1.0}, float[1] two = {2.0}> {
            three = Add (one, two)
            n = Sub (x, z)
            d = Mul (n, three)
            h = MatMul (d, weight)
            b = Add (h, bias)
            r = LeakyRelu <alpha = 0.3> (b)
            p = Softmax <axis = 1> (r)
        }""")
    )
    rng = np.random.default_rng(3)
    for name, shape in (("weight", (6, 3)), ("bias", (3,))):
        values = (rng.standard_normal(shape) / 2).astype(np.float32)
        made.graph.initializer.append(numpy_helper.from_array(values, name))
    return made


def feeds() -> dict[str, Any]:
    """Inputs of the model."""
    rng = np.random.default_rng(5)
    return {name: rng.standard_normal((4, 6)).astype(np.float32) for name in ("x", "z")}


Edit = Callable[[ir.Model], None]


def _loading(edit: Edit) -> AbstractContextManager[None]:
    def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            loaded = original(*args, **kwargs)
            edit(loaded)
            return loaded

        return call

    return replaced(ir.serde, "deserialize_model", wrap)


def _after_pass(owner: Any, edit: Edit) -> AbstractContextManager[None]:
    def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
        def call(self: Any, given: ir.Model) -> Any:
            result = original(self, given)
            edit(result.model)
            return result

        return call

    return replaced(owner, "call", wrap)


def _writing(edit: Callable[[onnx.ModelProto], None]) -> AbstractContextManager[None]:
    def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
        def call(proto: onnx.ModelProto, *args: Any, **kwargs: Any) -> Any:
            copy = onnx.ModelProto()
            copy.CopyFrom(proto)
            edit(copy)
            return original(copy, *args, **kwargs)

        return call

    return replaced(onnx, "save", wrap)


@contextmanager
def _truncating() -> Iterator[None]:
    def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
        def call(proto: onnx.ModelProto, path: str, *args: Any, **kwargs: Any) -> None:
            original(proto, path, *args, **kwargs)
            content = Path(path).read_bytes()
            Path(path).write_bytes(content[: len(content) // 2])

        return call

    with replaced(onnx, "save", wrap):
        yield


def _running(change: Callable[[list[Any]], list[Any]]) -> AbstractContextManager[None]:
    def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
        return lambda self, *args, **kwargs: change(original(self, *args, **kwargs))

    return replaced(ort.InferenceSession, "run", wrap)


def _of(given: ir.Model, op_type: str) -> ir.Node | None:
    return next((node for node in given.graph if node.op_type == op_type), None)


def _scale(given: ir.Model, factor: float, name: str) -> None:
    value = given.graph.initializers.get(name)
    if value is not None and value.const_value is not None:
        value.const_value = ir.tensor(value.const_value.numpy() * np.float32(factor), name=name)


def _set(given: ir.Model, op_type: str, attribute: ir.Attr) -> None:
    node = _of(given, op_type)
    if node is not None:
        node.attributes[attribute.name] = attribute


def _turn(given: ir.Model) -> None:
    """Swaps what is subtracted from what, once."""
    node = _of(given, "Sub")
    if node is not None and node.inputs[0] is not None and node.inputs[0].name == "x":
        first, second = node.inputs
        node.replace_input_with(0, second)
        node.replace_input_with(1, first)


def _swap_outputs(outputs: Any) -> None:
    outputs[0], outputs[1] = outputs[1], outputs[0]


def _change_operator(given: ir.Model, old: str, new: str) -> None:
    node = _of(given, old)
    if node is not None:
        node.op_type = new
        node.attributes.clear()


def _scale_file(proto: onnx.ModelProto, factor: float) -> None:
    tensor = next(t for t in proto.graph.initializer if t.name == "weight")
    tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor) * np.float32(factor), tensor.name))


def _drop_attribute(proto: onnx.ModelProto) -> None:
    node = next(n for n in proto.graph.node if n.op_type == "LeakyRelu")
    del node.attribute[:]


def _turn_in_file(proto: onnx.ModelProto) -> None:
    node = next(n for n in proto.graph.node if n.op_type == "Sub")
    node.input[0], node.input[1] = node.input[1], node.input[0]


def _future_version(proto: onnx.ModelProto) -> None:
    proto.ir_version = 99


def _duplicated_input(proto: onnx.ModelProto) -> None:
    proto.graph.input.add().CopyFrom(proto.graph.input[0])


def _surplus_outputs(proto: onnx.ModelProto) -> None:
    proto.graph.node[0].output.extend(["surplus_1", "surplus_2"])


def _wrong_inner_type(proto: onnx.ModelProto) -> None:
    name = next(n for n in proto.graph.node if n.op_type == "Sub").output[0]
    kept = [value for value in proto.graph.value_info if value.name != name]
    del proto.graph.value_info[:]
    proto.graph.value_info.extend([*kept, helper.make_tensor_value_info(name, TensorProto.INT64, [4, 6])])


def _load(name: str, edit: Edit, note: str) -> OnnxFault:
    return OnnxFault(f"load-{name}", LOAD_MODEL, "wrong-model", partial(_loading, edit), note)


def _pass(name: str, owner: Any, edit: Edit, note: str) -> OnnxFault:
    return OnnxFault(f"optimization-{name}", OPTIMIZATION, "wrong-model", partial(_after_pass, owner, edit), note)


def _file(name: str, edit: Callable[[onnx.ModelProto], None], note: str) -> OnnxFault:
    return OnnxFault(f"export-{name}", EXPORT, "wrong-model", partial(_writing, edit), note)


def _invalid(name: str, edit: Callable[[onnx.ModelProto], None], note: str) -> OnnxFault:
    return OnnxFault(f"validation-{name}", VALIDATION, "crash", partial(_writing, edit), note)


def _run(name: str, change: Callable[[list[Any]], list[Any]], note: str) -> OnnxFault:
    return OnnxFault(f"runtime-{name}", RUNTIME, "wrong-model", partial(_running, change), note)


def _raising(stage: str, owner: Any, attribute: str, note: str) -> OnnxFault:
    plant = partial(replaced, owner, attribute, acting_first(raise_error))
    return OnnxFault(f"{stage}-raises", stage, "crash", plant, note)


FAULTS: tuple[OnnxFault, ...] = (
    _load("scaled-weight", lambda m: _scale(m, 1.01, "weight"), "a weight is read 1 % too large"),
    _load("zero-bias", lambda m: _scale(m, 0.0, "bias"), "a bias is lost"),
    _load("other-axis", lambda m: _set(m, "Softmax", ir.AttrInt64("axis", 0)), "an attribute is read wrongly"),
    _load("turned-subtraction", _turn, "the inputs of a node change places"),
    _raising(LOAD_MODEL, ir.serde, "deserialize_model", "the reader raises"),
    _pass(
        "folds-wrongly", folding.FoldConstantsPass, lambda m: _scale(m, 1.01, "weight"), "a constant is folded wrongly"
    ),
    _pass(
        "rewrites-wrongly",
        rewriter.RewritePass,
        lambda m: _change_operator(m, "LeakyRelu", "Relu"),
        "a rule takes one operator for another",
    ),
    _pass(
        "loses-an-attribute",
        common.CommonSubexpressionEliminationPass,
        lambda m: _set(m, "LeakyRelu", ir.AttrFloat32("alpha", 0.01)),
        "an attribute gets its default",
    ),
    _pass("swaps-outputs", common.OutputFixPass, lambda m: _swap_outputs(m.graph.outputs), "the outputs change places"),
    _pass("drops-a-bias", common.DeduplicateInitializersPass, lambda m: _scale(m, 0.0, "bias"), "a bias is lost"),
    _raising(OPTIMIZATION, common.NameFixPass, "call", "a pass raises"),
    _file("scaled-weight", lambda p: _scale_file(p, 1.01), "a weight is written 1 % too large"),
    _file("zero-weight", lambda p: _scale_file(p, 0.0), "a weight is written as zeros"),
    _file("lost-attribute", _drop_attribute, "an attribute is not written"),
    _file("turned-subtraction", _turn_in_file, "the inputs of a node change places"),
    OnnxFault("export-truncated", EXPORT, "crash", _truncating, "the file ends too early"),
    _raising(EXPORT, onnx, "save", "the writer raises"),
    _invalid("future-version", _future_version, "the file claims a version that does not exist"),
    _invalid("duplicated-input", _duplicated_input, "an input is declared twice"),
    _invalid("surplus-outputs", _surplus_outputs, "a node has more outputs than its operator"),
    _invalid("wrong-inner-type", _wrong_inner_type, "a value is declared with a type that it does not have"),
    _run("scaled", lambda outputs: [o * np.float32(1.01) for o in outputs], "the results are 1 % too large"),
    _run("negated", lambda outputs: [-o for o in outputs], "the results have the other sign"),
    _run("swapped", lambda outputs: outputs[::-1], "the outputs change places"),
    _run("zero-row", lambda outputs: [o * (np.arange(4) != 1)[:, None].astype(o.dtype) for o in outputs], "a row is 0"),
    _raising(RUNTIME, ort.InferenceSession, "run", "the runtime raises"),
)
