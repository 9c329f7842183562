"""`model.keras`, `model.h5` and SavedModel folders as sources.

None of them runs code of its own unless the user says so: Keras loads in safe mode, and a graph with operators that
may touch files, the network or Python is refused before anything of it runs (`tensorflow_trust`).
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from trueport.adapters.sources.files import existing_file
from trueport.adapters.sources.fingerprint import sha256_of_file
from trueport.adapters.sources.keras_file import load_keras
from trueport.adapters.sources.registry import SourceRequest
from trueport.adapters.sources.tensorflow_setup import import_tensorflow
from trueport.adapters.sources.tensorflow_source import source_of
from trueport.adapters.sources.tensorflow_subject import subject_of_source
from trueport.adapters.sources.tensorflow_trust import reaching_of_meta_graph, require_inside
from trueport.adapters.sources.wording import listed
from trueport.core.errors import UsageError
from trueport.core.subject import Subject

_GRAPH_FILE = "saved_model.pb"
_DEFAULT_SIGNATURE = "serving_default"
_BOOKKEEPING = "__saved_model_init_op"
_LARGEST_GRAPH_BYTES = 2**31 - 1
"""What a protobuf message may have."""


def load(request: SourceRequest) -> Subject:
    """Returns the subject of a Keras file or of a SavedModel folder.

    Raises:
        UsageError: it cannot be read, holds code or operators that reach out and is not trusted, has no signature that
            tells what to run, or inputs do not fit.
        SourceError: the model raises when it is traced.
    """
    path = Path(request.spec).expanduser()
    if path.is_dir():
        return _saved_model(path, request)
    return load_keras(existing_file(request.spec), request)


def _saved_model(folder: Path, request: SourceRequest) -> Subject:
    file = folder / _GRAPH_FILE
    if not file.is_file():
        raise UsageError(f"expected the folder '{folder}' to be a SavedModel; it holds no {_GRAPH_FILE}")
    if not request.trust_pickle:
        _require_own_files(folder)
    tf = import_tensorflow()
    meta = _meta_graph(file)
    if not request.trust_pickle:
        require_inside(reaching_of_meta_graph(meta), f"'{folder}'")
    try:
        loaded = tf.saved_model.load(str(folder))
    except Exception as error:
        message = " ".join(str(error).split())[:400]
        raise UsageError(f"the SavedModel '{folder}' cannot be loaded: {type(error).__name__}: {message}") from error
    return subject_of_source(
        source_of(_signature(loaded, folder), loaded),
        None,
        name=folder.resolve().name,
        sha256=_sha256_of_folder(folder),
        request=request,
        where=f"the inputs of '{folder}'",
    )


def _require_own_files(folder: Path) -> None:
    """Refuses a folder with members that are no plain files or lie elsewhere."""
    home = folder.resolve()
    for path in sorted(folder.rglob("*")):
        if not path.resolve().is_relative_to(home):
            raise UsageError(
                f"expected all files of the SavedModel '{folder}' to lie in it; '{path.relative_to(folder)}' is a link "
                "to another place; copy the folder with its links resolved (cp -rL), or give --trust-pickle if you "
                "trust the model"
            )
        if not (path.is_file() or path.is_dir()):
            raise UsageError(
                f"expected the SavedModel '{folder}' to hold plain files; '{path.relative_to(folder)}' is none, or a "
                "broken link"
            )


def _meta_graph(file: Path) -> Any:
    """Returns the only graph of a SavedModel, from the file alone."""
    from google.protobuf.message import DecodeError  # type: ignore[import-untyped]  # ships no type hints
    from tensorflow.core.protobuf.saved_model_pb2 import SavedModel

    size = file.stat().st_size
    if size > _LARGEST_GRAPH_BYTES:
        raise UsageError(f"expected '{file}' to have at most {_LARGEST_GRAPH_BYTES:,} bytes, got {size:,}")
    parsed = SavedModel()
    try:
        parsed.ParseFromString(file.read_bytes())
    except DecodeError as error:
        raise UsageError(f"expected '{file}' to be the graph of a SavedModel; it cannot be parsed: {error}") from error
    if len(parsed.meta_graphs) != 1:
        tags = "; ".join(", ".join(sorted(meta.meta_info_def.tags)) or "no tag" for meta in parsed.meta_graphs)
        held = f"it holds {len(parsed.meta_graphs)} ({tags})" if tags else "it holds none"
        raise UsageError(f"expected '{file}' to hold one graph; {held}; save one of them on its own")
    return parsed.meta_graphs[0]


def _signature(loaded: Any, folder: Path) -> Any:
    """Returns `serving_default`, or the only signature.

    Raises:
        UsageError: there is none, or none of several is the default one.
    """
    signatures = {name: function for name, function in loaded.signatures.items() if name != _BOOKKEEPING}
    if _DEFAULT_SIGNATURE in signatures:
        return signatures[_DEFAULT_SIGNATURE]
    if len(signatures) == 1:
        return next(iter(signatures.values()))
    what = f"it has {listed(sorted(signatures))}" if signatures else "it has no signature"
    raise UsageError(
        f"expected the SavedModel '{folder}' to have the signature '{_DEFAULT_SIGNATURE}' or a single one: "
        f"it says what to check; {what}; save it with tf.saved_model.save(model, folder, signatures=...)"
    )


def _sha256_of_folder(folder: Path) -> str:
    """Returns the SHA-256 of the names and bytes of the files that a SavedModel consists of."""
    digest = hashlib.sha256()
    for file in sorted(p for p in folder.rglob("*") if p.is_file()):
        digest.update(f"{file.relative_to(folder).as_posix()} {sha256_of_file(file)}\n".encode())
    return digest.hexdigest()
