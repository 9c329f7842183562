"""Which files besides the model file itself a model on disk consists of, and reading what is in them.

The names come from the model, which is untrusted: only plain files inside the model's own folder are read.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path, PureWindowsPath

import onnx
import psutil

from trueport.core.errors import UsageError
from trueport.onnxgraph.contents import check_tensor, size_bytes
from trueport.onnxgraph.nesting import tensors


@dataclass(frozen=True)
class Place:
    """Where the data of a tensor lies.

    Attributes:
        file: absolute, inside of the model's folder.
        offset: first byte.
        length: number of bytes that the tensor takes.
    """

    file: Path
    offset: int
    length: int


def external_files(path: Path) -> list[Path]:
    """Returns the files with external data of a model, relative to its folder, each once and sorted.

    Args:
        path: the model file; its data is not read.

    Raises:
        UsageError: the model names a file outside its own folder, or one that is not there.
    """
    model = onnx.load(str(path), load_external_data=False)
    return files_of(model, path)


def files_of(model: onnx.ModelProto, path: Path) -> list[Path]:
    """Returns the files with external data of a model that came from `path`; see `external_files`."""
    folder = path.parent.resolve()
    return sorted({_file(t, path, folder).relative_to(folder) for t in tensors(model) if _is_external(t)})


def load_external(model: onnx.ModelProto, path: Path) -> int:
    """Reads external data into the model, in place, and returns how many bytes there were.

    Every place is checked before the first byte is read.

    Args:
        model: as it was parsed from the file.
        path: the file.

    Raises:
        UsageError: data is missing, outside of the folder or of the file, of another length than the shape says, or
            more than fits into memory.
    """
    folder = path.parent.resolve()
    places = [(tensor, _place(tensor, path, folder)) for tensor in tensors(model) if _is_external(tensor)]
    total = sum(place.length for _, place in places)
    largest = max((place.length for _, place in places), default=0)
    free = psutil.virtual_memory().available
    if total + largest > free:
        raise UsageError(
            f"'{path}' has {total / 1e9:.1f} GB of external data, reading it takes {(total + largest) / 1e9:.1f} GB, "
            f"and {free / 1e9:.1f} GB of memory are free; use a machine with more memory or a smaller model"
        )
    for tensor, place in places:
        with place.file.open("rb") as file:
            file.seek(place.offset)
            tensor.raw_data = file.read(place.length)
        tensor.data_location = onnx.TensorProto.DEFAULT
        del tensor.external_data[:]
    return total


def _is_external(tensor: onnx.TensorProto) -> bool:
    return bool(tensor.data_location == onnx.TensorProto.EXTERNAL)


def _entry(tensor: onnx.TensorProto, key: str) -> str:
    value = next((entry.value for entry in tensor.external_data if entry.key == key), "")
    if not isinstance(value, str):  # protobuf gives texts that are no UTF-8 as bytes
        raise UsageError(f"expected the {key} of external data in UTF-8, got {value!r:.80}; the file is damaged")
    return value


def _file(tensor: onnx.TensorProto, path: Path, folder: Path) -> Path:
    """Returns the file of a tensor, inside of the folder even after symbolic links are followed."""
    location = _entry(tensor, "location")
    windows = PureWindowsPath(location)
    plain = bool(location) and "\0" not in location and not windows.is_absolute() and not windows.drive
    plain = plain and not Path(location).is_absolute() and ".." not in windows.parts
    file = (folder / location).resolve() if plain else folder
    if not file.is_relative_to(folder) or not file.is_file():
        raise UsageError(
            f"'{path}': expected the external data of tensor '{tensor.name}' in a file of the model's own folder, "
            f"got '{location[:200]}'{_why(folder / location if plain else None, file, folder)}"
        )
    return file


def _why(named: Path | None, file: Path, folder: Path) -> str:
    if named is None:
        return ", which leads out of it"
    if not file.is_relative_to(folder):
        return ", a link that leads out of it; put the file itself beside the model"
    return ", which does not exist" if not named.exists() else ", which is no plain file"


def _place(tensor: onnx.TensorProto, path: Path, folder: Path) -> Place:
    check_tensor(tensor)
    file = _file(tensor, path, folder)
    size, needed = file.stat().st_size, size_bytes(tensor)
    offset = _number(tensor, "offset", path)
    length = _number(tensor, "length", path) or needed
    if length != needed:
        raise UsageError(
            f"'{path}': expected {needed} bytes of external data for tensor '{tensor.name}' by its type and shape, "
            f"got a length of {length}"
        )
    if offset + length > size:
        raise UsageError(
            f"'{path}': expected tensor '{tensor.name}' at bytes {offset} to {offset + length} of '{file.name}', which "
            f"has only {size} bytes; it is truncated or belongs to another model"
        )
    return Place(file, offset, length)


def _number(tensor: onnx.TensorProto, key: str, path: Path) -> int:
    text = _entry(tensor, key)
    if not text:
        return 0
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        raise UsageError(
            f"'{path}': expected the {key} of the external data of tensor '{tensor.name}' as a number of bytes, "
            f"got '{text[:40]}'"
        )
    return int(text)
