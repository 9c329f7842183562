"""`--save`: the ONNX model as an ONNX test-case folder, with the source's own answers.

The layout is that of ONNX's backend tests, so that any tool that runs those can run this one::

    DIR/<converter>/
        model.onnx                       the file as the converter wrote it, with its external data beside it
        test_data_set_<n>/input_<i>.pb   in the order of the model's inputs
        test_data_set_<n>/output_<i>.pb  the source's own outputs in its own types, in the order of the model's outputs
        trueport.json                    says that the folder is ours, and which input set is which
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trueport.core.errors import UsageError
from trueport.core.options import CheckOptions
from trueport.core.taxonomy import Stage

if TYPE_CHECKING:
    from trueport.adapters.protocols import Checkpoint
    from trueport.api.session import Session
    from trueport.inputs.draw import InputSet

SCHEMA = "trueport.test-case/1"
MARK = "trueport.json"
MODEL = "model.onnx"
AS_IT_IS = "source"
"""The folder of an ONNX source that no converter touched."""
DEFAULTS = ("torch-dynamo", "tf2onnx", AS_IT_IS)
"""Where a check writes whose converter is the default of its framework."""


def folders(options: CheckOptions) -> list[Path]:
    """Returns the folders that a check with these options writes; none without `save`."""
    if options.save is None:
        return []
    names = ("candidate",) if options.candidate is not None else options.converters or DEFAULTS
    return [Path(options.save) / _folder_name(name) for name in names]


def _folder_name(converter: str) -> str:
    """Returns a name for a folder; a command of the user's own holds what no folder should be called."""
    return re.sub(r"[^A-Za-z0-9._-]+", "_", converter)


def refuse_foreign(options: CheckOptions) -> None:
    """Raises a `UsageError` before any work is done where saving would destroy what is not ours."""
    for folder in folders(options):
        _refuse(folder)


def save(session: Session, converter: str | None, file: Checkpoint | None) -> None:
    """Writes the test case of one conversion; nothing where the user did not ask or there is no file.

    It is written beside its place and renamed, so that a folder that is there is complete.

    Args:
        session: the source with its references.
        converter: by name, None for a candidate.
        file: the checkpoint that is the file.

    Raises:
        UsageError: the place holds something that is no test case of ours, or cannot be written.
    """
    if session.options.save is None or file is None:
        return
    folder = Path(session.options.save) / _folder_name(
        converter or ("candidate" if session.options.candidate is not None else AS_IT_IS)
    )
    session.emit({"event": "judging", "stage": Stage.EXPORT, "checkpoint": "saving the test case"})
    _refuse(folder)
    temporary = folder.with_name(f".{folder.name}.{os.getpid()}.part")
    try:
        temporary.mkdir(parents=True)
        _write(temporary, session, converter, file)
        _replace(folder, temporary)
    except OSError as error:
        raise UsageError(f"cannot save the test case to '{folder}': {error.strerror or error}") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _refuse(folder: Path) -> None:
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise UsageError(f"expected '{folder}' to be a folder or nothing, got a file; save to another place")
    if not folder.exists() or not any(folder.iterdir()):
        return
    schema = None
    with contextlib.suppress(OSError, ValueError, AttributeError):
        schema = json.loads((folder / MARK).read_text(encoding="utf-8")).get("schema")
    if schema != SCHEMA:
        raise UsageError(
            f"'{folder}' holds files that are no test case written by trueport; they are left alone. "
            "Save to another place or remove them"
        )


def _replace(folder: Path, temporary: Path) -> None:
    """Puts the new folder in the place of the old one, which is ours."""
    old = folder.with_name(f".{folder.name}.{os.getpid()}.old")
    if folder.exists():
        folder.rename(old)
    temporary.rename(folder)
    shutil.rmtree(old, ignore_errors=True)


def _write(folder: Path, session: Session, converter: str | None, file: Checkpoint) -> None:
    from trueport.onnxgraph.external import external_files

    assert file.path is not None
    shutil.copyfile(file.path, folder / MODEL)
    for name in external_files(file.path):
        if name.parts[0] in (MODEL, MARK) or name.parts[0].startswith("test_data_set_"):
            raise UsageError(
                f"the model keeps data in '{name}', a name that a test case uses itself; it cannot be saved"
            )
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file.path.parent / name, folder / name)
    places = _places(file)
    mark: dict[str, Any] = {
        "schema": SCHEMA,
        "origin": session.subject.origin,
        "sha256": session.subject.sha256,
        "converter": converter,
        "seed": session.options.seed,
        "data_sets": [] if places is None else _data_sets(folder, session, file, places),
    }
    if places is None:
        mark["note"] = "an input of the model has no counterpart among the source's inputs, so there are no data sets"
    (folder / MARK).write_text(json.dumps(mark, indent=2) + "\n", encoding="utf-8")


def _data_sets(folder: Path, session: Session, file: Checkpoint, places: Sequence[tuple[str, str, int]]) -> list[str]:
    """Writes one data set for every input set that may change a verdict; returns their labels."""
    references = session.references
    assert references is not None
    labels: list[str] = []
    for inputs, reference in zip(references.inputs, references.screens, strict=True):
        if inputs.regime == "nonfinite" and not session.options.nonfinite:
            continue
        place = folder / f"test_data_set_{len(labels)}"
        place.mkdir()
        _write_inputs(place, inputs, places)
        types = [output.dtype for output in reference.outputs]
        _write_tensors(place, "output", _output_names(file, types), reference.real, types)
        labels.append(inputs.label)
    return labels


def _places(file: Checkpoint) -> list[tuple[str, str, int]] | None:
    """Returns (name, type, number of the subject's leaf) of each input of the model, or None where one has no leaf."""
    from trueport.adapters.float64.onnx_program import OnnxProgram

    program = file.executable
    assert isinstance(program, OnnxProgram)
    places = []
    for value in program.interface.inputs:
        index = program.pairs.get(value.name)
        if index is None:
            return None
        places.append((value.name, value.dtype, index))
    return places


def _write_inputs(place: Path, inputs: InputSet, places: Sequence[tuple[str, str, int]]) -> None:
    names = [name for name, _, _ in places]
    arrays = [inputs.arrays[index] for _, _, index in places]
    # NumPy has no bfloat16, so the input sets hold such values as float32; any other type stays the source's.
    types = [
        declared if declared == "bfloat16" and array.dtype.name == "float32" else array.dtype.name
        for (_, declared, _), array in zip(places, arrays, strict=True)
    ]
    _write_tensors(place, "input", names, arrays, types)


def _output_names(file: Checkpoint, types: Sequence[str]) -> list[str]:
    """Returns the model's names; an output that the model lacks gets none."""
    names = [value.name for value in file.model.graph.output]
    return [names[i] if i < len(names) else "" for i in range(len(types))]


def _write_tensors(place: Path, kind: str, names: Sequence[str], arrays: Sequence[Any], types: Sequence[str]) -> None:
    import numpy as np
    from onnx import numpy_helper

    from trueport.oracle.units import real_dtype

    for number, (name, array, dtype) in enumerate(zip(names, arrays, types, strict=True)):
        tensor = numpy_helper.from_array(np.asarray(array).astype(real_dtype(dtype), copy=False), name)
        (place / f"{kind}_{number}.pb").write_bytes(tensor.SerializeToString(deterministic=True))
