"""Faults between the optimized graph and the file: both exporters' last step writes something else.

The dynamo exporter writes through `onnx.save`, external data included; the TorchScript exporter through its own
`_export_file`. What is written is changed here, so that everything before it is right.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from onnx import external_data_helper, numpy_helper
from torch.onnx._internal.torchscript_exporter import onnx_proto_utils

from tests.quality.seeded_faults.fault import (
    ACTIONS,
    DEADLY,
    DYNAMO,
    EXPORT,
    SCRIPT,
    Converter,
    SeededFault,
    replaced,
)
from tests.quality.seeded_faults.subjects import NETWORK, of, two_outputs, with_linear

Edit = Callable[[onnx.ModelProto], None]
Wrap = Callable[[Callable[..., None]], Callable[..., None]]


def _is_file(destination: Any) -> bool:
    """Memory is left alone: it holds what has not been written yet."""
    return isinstance(destination, str | Path)


@contextmanager
def _replacing_writers(save: Wrap, export_file: Wrap) -> Iterator[None]:
    with ExitStack() as stack:
        stack.enter_context(replaced(onnx, "save", save))
        stack.enter_context(replaced(onnx, "save_model", save))
        stack.enter_context(replaced(onnx_proto_utils, "_export_file", export_file))
        yield


def inline_weights(model: onnx.ModelProto, folder: Path) -> onnx.ModelProto:
    """A copy of `model` that holds its external data itself."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    external_data_helper.load_external_data_for_model(copy, str(folder))
    return copy


@contextmanager
def editing_file(edit: Edit) -> Iterator[None]:
    """Plants an edit of each model that is written, by either exporter."""

    def wrap_save(original: Callable[..., None]) -> Callable[..., None]:
        def save(proto: onnx.ModelProto, f: Any, *args: Any, **kwargs: Any) -> None:
            if not _is_file(f):
                original(proto, f, *args, **kwargs)
                return
            changed = inline_weights(proto, Path(f).parent)
            edit(changed)
            original(changed, f, *args, **kwargs)

        return save

    def wrap_export(original: Callable[..., None]) -> Callable[..., None]:
        def write(content: bytes, f: Any, *args: Any, **kwargs: Any) -> None:
            model = onnx.load_from_string(content)
            if _is_file(f):
                edit(model)
            original(model.SerializeToString(), f, *args, **kwargs)

        return write

    with _replacing_writers(wrap_save, wrap_export):
        yield


@contextmanager
def editing_bytes(edit: Callable[[Path], None]) -> Iterator[None]:
    """Plants an edit of each file after it was written, by either exporter."""

    def wrap(original: Callable[..., None]) -> Callable[..., None]:
        def write(content: Any, f: Any, *args: Any, **kwargs: Any) -> None:
            original(content, f, *args, **kwargs)
            if _is_file(f):
                edit(Path(f))

        return write

    with _replacing_writers(wrap, wrap):
        yield


@contextmanager
def acting_on_save(action: str) -> Iterator[None]:
    """Plants an action where a file is about to be written."""

    def wrap(original: Callable[..., None]) -> Callable[..., None]:
        def write(content: Any, f: Any, *args: Any, **kwargs: Any) -> None:
            if _is_file(f):
                ACTIONS[action]()
            original(content, f, *args, **kwargs)

        return write

    with _replacing_writers(wrap, wrap):
        yield


def _largest(model: onnx.ModelProto) -> onnx.TensorProto:
    floats = [tensor for tensor in model.graph.initializer if tensor.data_type == onnx.TensorProto.FLOAT]
    return max(floats, key=lambda tensor: int(np.prod(tensor.dims)))


def change_weights(change: Callable[[np.ndarray], np.ndarray], model: onnx.ModelProto) -> None:
    tensor = _largest(model)
    value = np.ascontiguousarray(change(numpy_helper.to_array(tensor).copy()))
    tensor.CopyFrom(numpy_helper.from_array(value, tensor.name))


def _scale(value: np.ndarray) -> np.ndarray:
    return value * np.float32(1.001)


def flip_one_sign(value: np.ndarray) -> np.ndarray:
    flat = value.reshape(-1)
    index = int(np.abs(flat).argmax())
    flat[index] = -flat[index]
    return value


def round_to_half(value: np.ndarray) -> np.ndarray:
    return value.astype(np.float16).astype(np.float32)


def _transpose(value: np.ndarray) -> np.ndarray:
    return value.T


def swap_outputs(model: onnx.ModelProto) -> None:
    outputs = list(model.graph.output)[::-1]
    del model.graph.output[:]
    model.graph.output.extend(outputs)


def _rename_output(model: onnx.ModelProto) -> None:
    """Another value takes the place of the output that was meant: the input of the node that computes it."""
    last = next(node for node in model.graph.node if model.graph.output[0].name in node.output)
    model.graph.output[0].name = last.input[0]


def lose_attribute(model: onnx.ModelProto) -> None:
    for node in model.graph.node:
        for attribute in node.attribute:
            if attribute.name == "axis":
                attribute.i = 0


def truncate(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: len(content) * 2 // 3])


def _shift_external_data(path: Path) -> None:
    """Moves the weights to a file beside the model, with an offset that is off by one number."""
    model = inline_weights(onnx.load(str(path), load_external_data=False), path.parent)
    tensor = _largest(model)
    content = tensor.raw_data or numpy_helper.to_array(tensor).tobytes()
    location = path.name + ".shifted"
    (path.parent / location).write_bytes(content + content[:4])
    external_data_helper.set_external_data(tensor, location, offset=4, length=len(content))
    for field in ("raw_data", "float_data"):
        tensor.ClearField(field)
    path.write_bytes(model.SerializeToString())


def _for(converter: Converter) -> tuple[SeededFault, ...]:
    prefix = "dynamo" if converter == DYNAMO else "script"

    def wrong(name: str, plant: Any, build: Any, note: str) -> SeededFault:
        return SeededFault(f"{prefix}-export-{name}", converter, EXPORT, "wrong-model", plant, build, note)

    def weights(change: Callable[[np.ndarray], np.ndarray]) -> Any:
        return partial(editing_file, partial(change_weights, change))

    linear = with_linear(lambda f, x: torch.tanh(f(x)), (4, 8))
    return (
        wrong("weights-scaled", weights(_scale), linear, "The largest initializer is a thousandth too large"),
        wrong("one-sign-flipped", weights(flip_one_sign), NETWORK, "One weight has the wrong sign"),
        wrong("weights-in-float16", weights(round_to_half), linear, "The largest initializer went through float16"),
        wrong("square-weights-transposed", weights(_transpose), linear, "A square initializer is transposed"),
        wrong("outputs-swapped", partial(editing_file, swap_outputs), with_linear(two_outputs, (4, 8)), "Order lost"),
        wrong("output-renamed", partial(editing_file, _rename_output), linear, "The output is the value before it"),
        wrong(
            "axis-lost",
            partial(editing_file, lose_attribute),
            of(lambda x: torch.softmax(x, -1), (8, 8)),
            "An attribute is written as zero",
        ),
        wrong(
            "external-offset",
            partial(editing_bytes, _shift_external_data),
            linear,
            "The offset of external data is off by one number",
        ),
        SeededFault(
            f"{prefix}-export-truncated",
            converter,
            EXPORT,
            "crash",
            partial(editing_bytes, truncate),
            NETWORK,
            "The last third of the file is missing",
        ),
        *(
            SeededFault(
                f"{prefix}-export-{action}",
                converter,
                EXPORT,
                "crash",
                partial(acting_on_save, action),
                NETWORK,
                f"Writing the file {action}",
                ends_process=action in DEADLY,
            )
            for action in ACTIONS
        ),
    )


FAULTS = (*_for(DYNAMO), *_for(SCRIPT))
