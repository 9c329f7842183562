"""Input sets in the folders `test_data_set_N` beside a model, as ONNX's own test cases have them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import onnx
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]  # it ships no types

from trueport.adapters.sources.onnx_values import fitted
from trueport.core.errors import UsageError
from trueport.core.subject import Example
from trueport.onnxgraph.contents import check_tensor
from trueport.onnxgraph.interface import Form, Interface, ValueInfo

_FOLDER = re.compile(r"test_data_set_(\d{1,6})")
_FILE = re.compile(r"input_(\d{1,6})\.pb")


def examples_beside(path: Path, interface: Interface) -> tuple[Example, ...]:
    """Returns one example per folder `test_data_set_N` beside a model, by number; none where there is no such folder.

    `input_M.pb` belongs to the M-th input of the graph, those with an initializer after all others.

    Raises:
        UsageError: a file cannot be read, or does not fit the model.
    """
    folders = [(int(m.group(1)), f) for f in path.parent.iterdir() if (m := _FOLDER.fullmatch(f.name)) and f.is_dir()]
    examples: list[Example] = []
    for number, folder in sorted(folders):
        values = _values(folder, interface)
        if values is not None:
            label = "example" if not examples else f"test_data_set_{number}"
            examples.append(Example(kwargs=values, label=label))
    return tuple(examples)


def _values(folder: Path, interface: Interface) -> dict[str, Any] | None:
    files = sorted((int(m.group(1)), f) for f in folder.iterdir() if (m := _FILE.fullmatch(f.name)))
    if not files:
        return None
    infos = (*interface.inputs, *interface.optional)
    where = f"'{folder}'"
    if files[-1][0] >= len(infos):
        raise UsageError(f"expected {where} to hold at most {len(infos)} inputs, as the model takes, got "
                         f"{files[-1][1].name}; give other inputs with --inputs")  # fmt: skip
    return fitted({infos[i].name: _read(file, infos[i]) for i, file in files}, interface, where)


def _read(file: Path, info: ValueInfo) -> Any:
    try:
        content = file.read_bytes()
        if info.form.may_be_absent:
            return _optional(onnx.OptionalProto.FromString(content))
        if info.form is Form.SEQUENCE:
            return _sequence(onnx.SequenceProto.FromString(content))
        return _tensor(onnx.TensorProto.FromString(content))
    except (DecodeError, ValueError, TypeError, OSError, UsageError) as error:
        raise UsageError(
            f"expected '{file}' to hold the value of input '{info.name}', a {info.form}; it cannot be read: {error}"
        ) from error


def _tensor(tensor: onnx.TensorProto) -> Any:
    check_tensor(tensor)
    if tensor.data_location == onnx.TensorProto.EXTERNAL:
        raise UsageError("its data lies in another file")
    return onnx.numpy_helper.to_array(tensor)


def _sequence(sequence: onnx.SequenceProto) -> list[Any]:
    if sequence.elem_type not in (onnx.SequenceProto.TENSOR, onnx.SequenceProto.UNDEFINED):
        raise UsageError("only sequences of tensors can be given")
    return [_tensor(t) for t in sequence.tensor_values]


def _optional(optional: onnx.OptionalProto) -> Any:
    if optional.HasField("tensor_value"):
        return _tensor(optional.tensor_value)
    if optional.HasField("sequence_value"):
        return _sequence(optional.sequence_value)
    return None
