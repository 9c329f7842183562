"""`model.onnx`: an ONNX file as the source."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

from trueport.adapters.sources.files import existing_file
from trueport.adapters.sources.onnx_subject import subject_of_onnx, subject_of_parsed
from trueport.adapters.sources.registry import SourceRequest
from trueport.core.subject import Subject
from trueport.onnxgraph.external import files_of
from trueport.onnxgraph.reading import parse_model

__all__ = ["load", "subject_of_onnx"]


def load(request: SourceRequest) -> Subject:
    """Returns the subject of an ONNX file with its external data; nothing in the file is executed.

    Its identity is the SHA-256 of the file, and of the files with external data where there are any.

    Raises:
        UsageError: the file is no ONNX model or cannot be followed, its data is missing, truncated or outside of its
            folder, or the inputs do not fit.
    """
    path = existing_file(request.spec)
    model = parse_model(path)
    external = files_of(model, path)
    subject = subject_of_parsed(model, path=path, sha256="", request=request)
    # Hashed last: a file that cannot be used should be refused before gigabytes are read.
    return _identified(subject, [path, *(path.parent / file for file in external)])


def _identified(subject: Subject, files: list[Path]) -> Subject:
    digests = []
    for file in files:
        with file.open("rb") as opened:
            digests.append(hashlib.file_digest(opened, "sha256").hexdigest())
    whole = digests[0] if len(digests) == 1 else hashlib.sha256("\n".join(digests).encode()).hexdigest()
    return replace(subject, sha256=whole)
