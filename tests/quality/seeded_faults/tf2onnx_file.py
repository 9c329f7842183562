"""Faults of the file that tf2onnx writes: one that means something else, one that is invalid, and of who runs it."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any

import onnx
import onnxruntime as ort
from onnx import TensorProto, helper

from tests.quality.seeded_faults import file_writing, runtime, validation
from tests.quality.seeded_faults.fault import EXPORT, RUNTIME, VALIDATION, Plant, acting_first, raise_error, replaced
from tests.quality.seeded_faults.tf2onnx_fault import TensorFlowFault, acting, replacing
from tests.quality.seeded_faults.tf2onnx_subjects import arithmetic, network

_WRITER = ("tf2onnx.utils", "save_protobuf")


def _writing(edit: Callable[[onnx.ModelProto], None]) -> AbstractContextManager[None]:
    """Edits a copy of what is written."""

    def wrap(original: Callable[..., None]) -> Callable[..., None]:
        def save(path: str, message: onnx.ModelProto, *args: Any, **kwargs: Any) -> None:
            copy = onnx.ModelProto()
            copy.CopyFrom(message)
            edit(copy)
            original(path, copy, *args, **kwargs)

        return save

    return replacing(*_WRITER, wrap)


def _damaging(edit: Callable[[Path], None]) -> AbstractContextManager[None]:
    """Edits the bytes of the file once they are written."""

    def wrap(original: Callable[..., None]) -> Callable[..., None]:
        def save(path: str, *args: Any, **kwargs: Any) -> None:
            original(path, *args, **kwargs)
            edit(Path(path))

        return save

    return replacing(*_WRITER, wrap)


def _lose_output(model: onnx.ModelProto) -> None:
    del model.graph.output[-1]


def _widen_output(model: onnx.ModelProto) -> None:
    """The first output is float64, and says so."""
    output = model.graph.output[0]
    wide = f"{output.name}_wide"
    model.graph.node.append(helper.make_node("Cast", [output.name], [wide], to=TensorProto.DOUBLE))
    output.name = wide
    output.type.tensor_type.elem_type = TensorProto.DOUBLE


def _file(name: str, edit: Callable[[onnx.ModelProto], None], build: Callable[[], Any], note: str) -> TensorFlowFault:
    return TensorFlowFault(f"{EXPORT}-{name}", EXPORT, "wrong-model", partial(_writing, edit), build, note)


def _invalid(name: str, edit: Callable[[onnx.ModelProto], None], note: str) -> TensorFlowFault:
    return TensorFlowFault(f"{VALIDATION}-{name}", VALIDATION, "crash", partial(_writing, edit), arithmetic, note)


def _run(name: str, plant: Plant, build: Callable[[], Any], note: str) -> TensorFlowFault:
    return TensorFlowFault(f"{RUNTIME}-{name}", RUNTIME, "wrong-model", plant, build, note)


def _weights(change: Callable[[Any], Any]) -> Callable[[onnx.ModelProto], None]:
    return partial(file_writing.change_weights, change)


FAULTS = (
    _file("flipped-sign", _weights(file_writing.flip_one_sign), arithmetic, "one weight has the wrong sign"),
    _file("float16-weights", _weights(file_writing.round_to_half), arithmetic, "weights went through float16"),
    _file("swapped-outputs", file_writing.swap_outputs, network, "the outputs change places"),
    _file("lost-axis", file_writing.lose_attribute, arithmetic, "an axis is written as zero"),
    _file("missing-output", _lose_output, network, "the last output is not written"),
    _file("wide-output", _widen_output, arithmetic, "an output is written with another type"),
    TensorFlowFault(
        f"{EXPORT}-truncated",
        EXPORT,
        "crash",
        partial(_damaging, file_writing.truncate),
        arithmetic,
        "the file ends too early",
    ),
    acting(EXPORT, "raises", *_WRITER, arithmetic, "the writer raises"),
    _invalid("future-version", validation.future_version, "the file claims a version that does not exist"),
    _invalid("duplicated-input", validation.duplicated_input, "an input is declared twice"),
    _invalid("surplus-outputs", validation.surplus_node_outputs, "a node has more outputs than its operator"),
    _invalid("wrong-inner-type", validation.wrong_inner_type, "a value is declared with a type it does not have"),
    _run("scaled", partial(runtime.changing_outputs, runtime.scale), arithmetic, "results are a thousandth too large"),
    _run("one-nan", partial(runtime.changing_outputs, runtime.one_nan), arithmetic, "NaN at one element"),
    _run("last-row-zero", partial(runtime.changing_outputs, runtime.zero_last_row), arithmetic, "the last row is 0"),
    _run("missing-output", partial(runtime.changing_outputs, runtime.drop_last), arithmetic, "an output is missing"),
    _run("optimized-kernel", runtime.wrong_when_optimized, network, "wrong unless all optimizations are off"),
    TensorFlowFault(
        f"{RUNTIME}-raises", RUNTIME, "crash", partial(
            replaced, ort.InferenceSession, "run", acting_first(raise_error)
        ), arithmetic, "running the model raises",
    ),
)  # fmt: skip
