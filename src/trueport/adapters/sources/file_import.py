"""Runs a Python file of the user as a module with a private name, and says what went wrong in its own terms."""

from __future__ import annotations

import hashlib
import importlib.machinery
import importlib.util
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, ModuleType

from trueport.adapters.sources.files import existing_file
from trueport.adapters.sources.global_state import preserved_global_state
from trueport.adapters.sources.wording import choices
from trueport.core.errors import SourceError, UsageError

_PREFIX = "_trueport_source_"
_PRESENT_BEFORE = "__trueport_present_before__"  # on the module of a source: the names in sys.modules before it ran


@dataclass(frozen=True)
class FileObject:
    """A file of the user that was run, and what one of its names stands for."""

    path: Path
    module: ModuleType
    name: str
    value: object


class _FreshLoader(importlib.machinery.SourceFileLoader):
    # Compiled files are valid by time stamp and size, so one written a moment ago could stand for other code;
    # nor do we leave files beside the user's.
    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        code: CodeType = self.source_to_code(self.get_data(path), path)
        return code


def split_spec(spec: str, default: str) -> tuple[str, str]:
    """Returns path and name of `file.py[:NAME]`.

    Raises:
        UsageError: what follows the colon is no Python name.
    """
    path, colon, name = spec.rpartition(":")
    if not colon or not path.lower().endswith(".py"):
        return spec, default
    if not name.isidentifier():
        raise UsageError(f"expected a Python name after the colon of '{spec}', got '{name}'")
    return path, name


def object_of_file(spec: str, *, default_name: str, seed: int) -> FileObject:
    """Returns what `file.py:NAME` stands for, after running the file.

    Args:
        spec: `file.py` or `file.py:NAME`.
        default_name: the name where the specification has none.
        seed: see `preserved_global_state`.

    Raises:
        UsageError: no such file or no such name.
        SourceError: running the file raised or tried to end the process.
    """
    path_text, name = split_spec(spec, default_name)
    path = existing_file(path_text).resolve()
    with folder_importable(path.parent), preserved_global_state(seed):
        module = _run(path)
        try:
            # Not from `vars`: a file may make its names when they are asked for (PEP 562).
            value = getattr(module, name)
        except AttributeError as error:
            public = [key for key in vars(module) if not key.startswith("_")]
            own = [key for key in public if getattr(getattr(module, key), "__module__", None) == module.__name__]
            raise UsageError(f"'{path}' has no name '{name}'{choices(name, own or public, 'it defines')}") from error
    return FileObject(path, module, name, value)


@contextmanager
def folder_importable(folder: Path) -> Iterator[None]:
    """Puts `folder` first on `sys.path` while the block runs, as `python file.py` would."""
    before = list(sys.path)
    sys.path.insert(0, str(folder))
    # A file that the user wrote a moment ago may be missing from the import system's directory cache.
    importlib.invalidate_caches()
    try:
        yield
    finally:
        sys.path[:] = before


def source_error(path: Path, what: str, error: BaseException) -> SourceError:
    """Returns the error for an exception out of the user's file, with the user's own last line in it."""
    if isinstance(error, SyntaxError) and error.filename == str(path):
        line = (error.text or "").strip()
        return SourceError(f"'{path}' is no valid Python: {error.msg}, at line {error.lineno}: {line}")
    if isinstance(error, SystemExit):
        happened = f"ended the process (SystemExit with {error.code!r})"
    else:
        message = " ".join(str(error).split())[:400]
        happened = f"raised {type(error).__name__}: {message}" if message else f"raised {type(error).__name__}"
    return SourceError(f"{what} '{path}' {happened}{_user_line(path, error)}")


def _user_line(path: Path, error: BaseException) -> str:
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    return f", at line {frames[-1].lineno}: {frames[-1].line}" if frames else ""


def _run(path: Path) -> ModuleType:
    _forget_modules_of_earlier_files()
    name = _private_name(path)
    spec = importlib.util.spec_from_file_location(name, path, loader=_FreshLoader(name, str(path)))
    if spec is None or spec.loader is None:
        raise UsageError(f"'{path}' cannot be imported as Python")
    module = importlib.util.module_from_spec(spec)
    setattr(module, _PRESENT_BEFORE, frozenset(sys.modules))
    # Classes look their module up by name (dataclasses, inspect, pickling by reference), so it stays registered.
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise source_error(path, "running", error) from error
    return module


def _private_name(path: Path) -> str:
    digest = hashlib.sha256(str(path).encode() + b"\0" + path.read_bytes()).hexdigest()[:16]
    name, count = f"{_PREFIX}{digest}", 1
    while name in sys.modules:
        count += 1
        name = f"{_PREFIX}{digest}_{count}"
    return name


def _forget_modules_of_earlier_files() -> None:
    """Drops what files of earlier sources imported from beside them.

    Without this, `import layers` in b/model.py would get a/layers.py when a/model.py was loaded before it.
    """
    files = {name: file for name, module in list(sys.modules.items()) if (file := _file_of(module))}
    for source, source_file in files.items():
        if not source.startswith(_PREFIX):
            continue
        present_before = getattr(sys.modules[source], _PRESENT_BEFORE)
        for name, file in files.items():
            brought = name not in present_before and not name.startswith(_PREFIX)
            if brought and _import_root(name, file) == source_file.parent:
                sys.modules.pop(name, None)


def _file_of(module: ModuleType | None) -> Path | None:
    file = getattr(module, "__file__", None)
    return Path(file) if isinstance(file, str) else None


def _import_root(name: str, file: Path) -> Path:
    """Returns the folder that must be on `sys.path` for a module of this name to come from this file."""
    levels = name.count(".") + (1 if file.name == "__init__.py" else 0)
    parents = file.parents
    return parents[levels] if levels < len(parents) else file.parent
