"""`model.pt2`: a program saved by `torch.export.save`, with its example inputs when it holds them."""

from __future__ import annotations

import logging
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from trueport.adapters.sources.files import existing_file
from trueport.adapters.sources.fingerprint import sha256_of_file
from trueport.adapters.sources.global_state import preserved_global_state
from trueport.adapters.sources.loaded import LoadedSource, subject_from
from trueport.adapters.sources.program_shapes import dynamic_shapes_of
from trueport.adapters.sources.pt2_contents import reasons_to_refuse
from trueport.adapters.sources.registry import SourceRequest
from trueport.core.errors import UsageError
from trueport.core.subject import Example, Subject

_SHOWN_REASONS = 3


def load(request: SourceRequest) -> Subject:
    """Returns the subject of an exported program; its dynamic dimensions are those of the program.

    Raises:
        UsageError: the file is damaged, of another format, or would run code when loaded.
    """
    path = existing_file(request.spec)
    _check_archive(path)
    if not request.trust_pickle:
        _check_harmless(path)
    with preserved_global_state(request.seed), _quiet_torch_export():
        program = _program(path)
        model = program.module()
    return subject_from(
        LoadedSource(
            name=path.stem,
            sha256=sha256_of_file(path),
            model=model,
            examples=_examples(program),
            dynamic_shapes=dynamic_shapes_of(program),
            program=program,
        ),
        request,
    )


def _check_archive(path: Path) -> None:
    if not zipfile.is_zipfile(path):
        raise UsageError(
            f"'{path}' ({path.stat().st_size} bytes) is no complete zip archive; a .pt2 file is one, "
            "so this one is truncated or of another format; save it again with torch.export.save"
        )
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        damaged = _first_damaged(archive)
    if damaged is not None:
        raise UsageError(f"'{path}' is damaged at its record {damaged}; save it again with torch.export.save")
    if not any(name.split("/")[1:2] == ["models"] for name in names):
        # The sample inputs are an archive of their own inside, which is what is found when the end is cut off.
        raise UsageError(
            f"'{path}' is truncated or an archive of something else: it has no record models/*.json; "
            "expected a program saved by torch.export.save of torch 2.8 or later"
        )


def _first_damaged(archive: zipfile.ZipFile) -> str | None:
    try:
        return archive.testzip()
    except (zipfile.BadZipFile, EOFError, OSError, NotImplementedError) as error:
        return f"({error})"


def _check_harmless(path: Path) -> None:
    try:
        reasons = reasons_to_refuse(path)
    except Exception as error:
        raise _unreadable(path, error) from error
    if reasons:
        more = len(reasons) - _SHOWN_REASONS
        shown = "; ".join(reasons[:_SHOWN_REASONS]) + (f"; and {more} more" if more > 0 else "")
        raise UsageError(
            f"'{path}' is refused because loading it could run code: {shown}; "
            "save it without these, or, if you trust its origin, repeat with --trust-pickle"
        )


def _program(path: Path) -> Any:
    try:
        return torch.export.load(str(path))
    except Exception as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: Exception) -> UsageError:
    return UsageError(
        f"'{path}' cannot be loaded by torch {torch.__version__}: {type(error).__name__}: {str(error)[:300]}; "
        "expected a program saved by torch.export.save of the same or an older release"
    )


def _examples(program: Any) -> tuple[Example, ...]:
    stored = program.example_inputs
    if stored is None:
        return ()
    args, kwargs = stored
    return (Example(tuple(args), dict(kwargs)),)


@contextmanager
def _quiet_torch_export() -> Iterator[None]:
    # torch logs what it also raises; the error that we raise says it once.
    logger = logging.getLogger("torch.export")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)
