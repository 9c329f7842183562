"""Makes a subject of an ONNX model, wherever it came from."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import onnx

from trueport.adapters.sources.onnx_examples import DRAWN, choose_examples, larger_examples
from trueport.adapters.sources.registry import SourceRequest
from trueport.core.errors import UsageError
from trueport.core.subject import Subject
from trueport.onnxgraph.external import load_external
from trueport.onnxgraph.nesting import tensors
from trueport.onnxgraph.structure import prepare


def subject_of_onnx(
    model: onnx.ModelProto,
    feeds: Any,
    *,
    name: str,
    sha256: str,
    request: SourceRequest,
    path: Path | None = None,
    folder: Path | None = None,
    export_options: Mapping[str, Any] = MappingProxyType({}),
    where: str = "the feeds of the source",
) -> Subject:
    """Returns the subject of a model; `subject.model` is another object than `model` and holds all data.

    Args:
        model: it is not changed.
        feeds: a dict of arrays by input name, a tuple in order, a list of several of these, or None for inputs from
            elsewhere (see `choose_examples`).
        name: for people.
        sha256: of what defines the model.
        request: its `spec` is the origin.
        path: the file that holds the model, for runtimes that load it themselves, or None.
        folder: where external data of a model without a file lies, or None.
        export_options: options of the converter, such as `target_opset`.
        where: what `feeds` is called in messages.

    Raises:
        UsageError: the model cannot be followed, its data is missing or outside of its folder, or inputs do not fit.
    """
    owned = onnx.ModelProto()
    owned.CopyFrom(model)
    return _subject(
        owned, feeds, name=name, sha256=sha256, request=request, path=path, folder=folder,
        export_options=export_options, where=where,
    )  # fmt: skip


def subject_of_parsed(model: onnx.ModelProto, *, path: Path, sha256: str, request: SourceRequest) -> Subject:
    """Returns the subject of a model just parsed from `path`, whose data is read into it; see `subject_of_onnx`."""
    return _subject(
        model, None, name=path.stem, sha256=sha256, request=request, path=path, folder=path.parent,
        export_options={}, where="",
    )  # fmt: skip


def sha256_of_model(model: onnx.ModelProto) -> str:
    """Returns the SHA-256 of a model in memory: of its serialized bytes.

    Raises:
        UsageError: it has more than 2 GB, which no protobuf message can have.
    """
    try:
        return hashlib.sha256(model.SerializeToString(deterministic=True)).hexdigest()
    except Exception as error:
        raise UsageError(f"the model cannot be serialized: {error}; save it as a file with external data") from error


def _subject(
    model: onnx.ModelProto, feeds: Any, *, name: str, sha256: str, request: SourceRequest, path: Path | None,
    folder: Path | None, export_options: Mapping[str, Any], where: str,
) -> Subject:  # fmt: skip
    prepare(model, request.spec)
    if folder is not None:
        load_external(model, path if path is not None else folder / "model.onnx")
    elif any(t.data_location == onnx.TensorProto.EXTERNAL for t in tensors(model)):
        raise UsageError(
            f"expected the model of '{request.spec}' to hold its data, got external data; load it with onnx.load"
        )
    examples = choose_examples(model, feeds, path, request, where)
    drawn = examples[0].label == DRAWN
    return Subject(
        name=name,
        framework="onnx",
        origin=request.spec,
        sha256=sha256,
        model=model,
        examples=examples,
        export_options=dict(export_options),
        path=path,
        larger=partial(larger_examples, model, request) if drawn else None,
    )
