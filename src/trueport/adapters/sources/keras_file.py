"""`model.keras` and `model.h5` as sources. Keras loads them in its safe mode unless the user trusts the file."""

from __future__ import annotations

from pathlib import Path

from trueport.adapters.sources.fingerprint import sha256_of_file
from trueport.adapters.sources.keras_config import foreign_parts, require_sound_archive
from trueport.adapters.sources.registry import SourceRequest
from trueport.adapters.sources.tensorflow_setup import import_tensorflow, require_tensorflow_backend
from trueport.adapters.sources.tensorflow_subject import subject_of_tensorflow
from trueport.adapters.sources.tensorflow_trust import reaching_of_graph, require_inside
from trueport.adapters.sources.wording import listed
from trueport.core.errors import UsageError
from trueport.core.subject import Subject


def load_keras(path: Path, request: SourceRequest) -> Subject:
    """Returns the subject of a model that Keras saved in one file.

    Raises:
        UsageError: it cannot be read, holds code and is not trusted, needs classes that Keras does not have, or inputs
            do not fit.
        SourceError: the model raises when it is traced.
    """
    import_tensorflow()
    where = f"'{path}'"
    require_tensorflow_backend(where)
    import keras

    if path.suffix.lower() == ".keras":
        require_sound_archive(path, trusted=request.trust_pickle)
    try:
        model = keras.saving.load_model(str(path), compile=False, safe_mode=not request.trust_pickle)
    except Exception as error:
        raise UsageError(_why_not(path, error, trusted=request.trust_pickle)) from error
    subject = subject_of_tensorflow(
        model, None, {}, None, name=path.stem, sha256=sha256_of_file(path), request=request, where=where
    )
    if not request.trust_pickle:
        require_inside(reaching_of_graph(subject.model.function.graph.as_graph_def()), where)
    return subject


def _why_not(path: Path, error: Exception, *, trusted: bool) -> str:
    """Returns why a file cannot be loaded: by what its configuration names, else by what Keras says."""
    foreign = foreign_parts(path)
    if foreign.classes:
        return (
            f"expected '{path}' to need nothing but Keras; it uses {listed(foreign.classes)}: give a Python file that "
            "defines them and returns the model, as file.py:NAME"
        )
    if foreign.unsafe and not trusted:
        return (
            f"'{path}' holds layers with code or a graph of their own, or that read a file ({listed(foreign.unsafe)}); "
            "they are not run unless you trust the file; give --trust-pickle if you do"
        )
    message = " ".join(str(error).split())[:400]
    return f"expected '{path}' to be a model saved by Keras; it cannot be loaded: {type(error).__name__}: {message}"
