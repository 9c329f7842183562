"""Files that are not loaded as they are: pickles run code, and weights alone are no model."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn

from trueport.adapters.sources.files import existing_file
from trueport.adapters.sources.fingerprint import sha256_of_file
from trueport.adapters.sources.global_state import preserved_global_state
from trueport.adapters.sources.loaded import LoadedSource, subject_from
from trueport.adapters.sources.registry import SourceRequest
from trueport.adapters.sources.wording import described, listed
from trueport.core.errors import SourceError, UsageError
from trueport.core.subject import Subject

_INSTEAD = (
    "write a file model.py with a function that builds the module and loads the weights "
    "(torch.load(..., weights_only=True) or safetensors), and check model.py:NAME; "
    "or save the program with torch.export.save and check the .pt2 file"
)


def load(request: SourceRequest) -> Subject:
    """Returns the subject of a pickled module or TorchScript archive that the user trusts.

    Raises:
        UsageError: the user did not say `--trust-pickle`, or the file holds no module; the message says what to do.
        SourceError: unpickling raised.
    """
    path = existing_file(request.spec)
    if path.suffix.lower() == ".safetensors":
        if (path.parent / "config.json").is_file():
            raise UsageError(
                f"'{path}' holds weights and no model; config.json beside it says what the model is, so check the "
                f"folder '{path.parent}' itself"
            )
        raise UsageError(f"'{path}' holds weights and no model; {_INSTEAD}")
    script = _is_torchscript(path)
    if not request.trust_pickle:
        kind = "a TorchScript archive, whose code would be run" if script else "a pickle; loading it can run any code"
        raise UsageError(
            f"'{path}' is {kind}, so it is refused; {_INSTEAD}; if you trust its origin, repeat with --trust-pickle"
        )
    with preserved_global_state(request.seed):
        model = _opened(path, script=script)
    return subject_from(LoadedSource(path.stem, sha256_of_file(path), _module(model, path)), request)


def _opened(path: Path, *, script: bool) -> Any:
    try:
        if script:
            return torch.jit.load(str(path), map_location="cpu")
        return torch.load(path, map_location="cpu", weights_only=False)
    except (Exception, SystemExit) as error:
        raise SourceError(
            f"'{path}' cannot be loaded: {type(error).__name__}: {error}; expected a whole module saved by "
            "torch.save(module, path) whose class can be imported here, or a TorchScript archive"
        ) from error


def _module(value: Any, path: Path) -> nn.Module:
    if isinstance(value, nn.Module):
        return value
    if isinstance(value, Mapping) and any(isinstance(item, torch.Tensor) for item in value.values()):
        raise UsageError(f"'{path}' holds a state dict of {len(value)} entries and no module; {_INSTEAD}")
    if isinstance(value, Mapping):
        raise UsageError(
            f"'{path}' holds a checkpoint with the keys {listed(map(str, value))} and no module; {_INSTEAD}"
        )
    raise UsageError(f"expected '{path}' to hold an nn.Module, got {described(value)}; {_INSTEAD}")


def _is_torchscript(path: Path) -> bool:
    if not zipfile.is_zipfile(path):
        return False
    try:
        with zipfile.ZipFile(path) as archive:
            # A pickled tensor archive has data.pkl alone; compiled code stands beside it.
            return any(name.split("/")[1:2] in (["code"], ["constants.pkl"]) for name in archive.namelist())
    except zipfile.BadZipFile:
        return False
