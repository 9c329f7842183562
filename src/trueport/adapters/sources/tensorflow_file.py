"""`model.keras`, `model.h5` and SavedModel folders as sources.

None of them runs code of its own unless the user says so: Keras loads in safe mode, and a SavedModel whose graphs hold
operators that touch files or call Python is refused before it is loaded.
"""

from __future__ import annotations

import hashlib
import zipfile
from pathlib import Path
from typing import Any

from trueport.adapters.sources.files import existing_file
from trueport.adapters.sources.fingerprint import sha256_of_file
from trueport.adapters.sources.registry import SourceRequest
from trueport.adapters.sources.tensorflow_setup import import_tensorflow
from trueport.adapters.sources.tensorflow_source import source_of
from trueport.adapters.sources.tensorflow_subject import subject_of_source, subject_of_tensorflow
from trueport.adapters.sources.wording import listed
from trueport.core.errors import UsageError
from trueport.core.subject import Subject

_GRAPH_FILE = "saved_model.pb"
_DEFAULT_SIGNATURE = "serving_default"
_BOOKKEEPING = "__saved_model_init_op"
_REACHES_OUT = frozenset(
    {"ReadFile", "WriteFile", "MatchingFiles", "PyFunc", "PyFuncStateless", "EagerPyFunc", "DebugIdentity",
     "DebugIdentityV2", "DebugIdentityV3", "DumpTensor", "LegacyParallelInterleaveDatasetV2"}
)  # fmt: skip
"""Operators that read or write files of any name, or run Python."""


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
    return _keras_file(existing_file(request.spec), request)


# ---------------------------------------------------------------------- Keras


def _keras_file(path: Path, request: SourceRequest) -> Subject:
    import_tensorflow()
    import keras

    if path.suffix.lower() == ".keras" and not zipfile.is_zipfile(path):
        raise UsageError(f"expected '{path}' to be a zip archive as Keras writes it; it is none, or cut off")
    try:
        model = keras.saving.load_model(str(path), compile=False, safe_mode=not request.trust_pickle)
    except Exception as error:
        raise UsageError(_why_not(path, error, trusted=request.trust_pickle)) from error
    return subject_of_tensorflow(
        model, None, {}, None, name=path.stem, sha256=sha256_of_file(path), request=request, where=f"'{path}'"
    )


def _why_not(path: Path, error: Exception, *, trusted: bool) -> str:
    message = " ".join(str(error).split())
    if not trusted and ("safe_mode" in message or "unsafe" in message.lower() or "lambda" in message.lower()):
        return (
            f"'{path}' holds Python code (a Lambda layer), which is not run unless you trust the file; "
            "give --trust-pickle if you do"
        )
    return (
        f"expected '{path}' to be a model saved by Keras; it cannot be loaded: {type(error).__name__}: {message[:400]}"
    )


# ---------------------------------------------------------------------- SavedModel


def _saved_model(folder: Path, request: SourceRequest) -> Subject:
    file = folder / _GRAPH_FILE
    if not file.is_file():
        raise UsageError(f"expected the folder '{folder}' to be a SavedModel; it holds no {_GRAPH_FILE}")
    tf = import_tensorflow()
    reaching = sorted(_operators(file) & _REACHES_OUT)
    if reaching and not request.trust_pickle:
        raise UsageError(
            f"'{folder}' holds operators that touch files or run Python ({listed(reaching)}); they are not run unless "
            "you trust the model; give --trust-pickle if you do"
        )
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


def _operators(file: Path) -> set[str]:
    """Returns every operator in the graphs and functions of a SavedModel, from the file alone."""
    from google.protobuf.message import DecodeError  # type: ignore[import-untyped]  # ships no type hints
    from tensorflow.core.protobuf.saved_model_pb2 import SavedModel

    parsed = SavedModel()
    try:
        parsed.ParseFromString(file.read_bytes())
    except DecodeError as error:
        raise UsageError(f"expected '{file}' to be the graph of a SavedModel; it cannot be parsed: {error}") from error
    if not parsed.meta_graphs:
        raise UsageError(f"expected '{file}' to hold a graph; it holds none")
    found: set[str] = set()
    for meta in parsed.meta_graphs:
        found.update(node.op for node in meta.graph_def.node)
        for function in meta.graph_def.library.function:
            found.update(node.op for node in function.node_def)
    return found


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
