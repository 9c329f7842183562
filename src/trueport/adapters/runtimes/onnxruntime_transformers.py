"""ONNX Runtime's graph transformers and rewrite rules, each of which can be switched off by its name.

The library has no list of them. Their names stand in it: as texts, or, where a short text was compiled into
instructions, as the name of the class, which is the same. A name that ONNX Runtime does not know is ignored, so a list
that holds too many does no harm, while one that lacks a name cannot blame that part.
"""

from __future__ import annotations

import mmap
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import onnx

from trueport.adapters.protocols import Executed

_SOUNDS_LIKE_ONE = re.compile(
    r"Fus(e|ion)|Eliminat|Optimizer|Transformer|Folding|Sharing|Remov|Rewrite|Propagat|Quantization|Elimination|DQ|Dq"
    r"|Cleanup|Rule|Insert|Unsqueeze|Cast"
)
_TEXT = re.compile(rb"\x00([A-Z][A-Za-z0-9_]{3,63})(?=\x00)")
_CLASS = re.compile(rb"N11onnxruntime(?:3QDQ)?([0-9]{1,2})([A-Z][A-Za-z0-9]{3,63})E\x00")
"""A class of ONNX Runtime as the Itanium C++ ABI writes its name: the length, then the name."""

_LEVEL = re.compile(r"(?<=[a-z])L[0-9]$")

Load = Callable[["frozenset[str]", "Path | None"], "Callable[[Mapping[str, Any]], list[Any]]"]
"""(names that are off, where to write the optimized graph) -> what runs it."""


def transformers(library: Path, providers: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Returns the names of all graph transformers and rewrite rules, and some that are none, in alphabetical order.

    Some transformers run at several levels, or once for each execution provider, under a name for each: they are one
    entry here, since to switch off one of them changes nothing where the next one does the same.

    Takes about half a second for each library and process.

    Args:
        library: the shared object with ONNX Runtime in it.
        providers: execution providers in use.

    Returns:
        name -> the names by which ONNX Runtime knows it, which are what `disabled_optimizers` takes.

    Raises:
        OSError: the library cannot be read.
    """
    found: dict[str, set[str]] = {}
    for name in _names_in(library):
        plain = _LEVEL.sub("", name.removesuffix("_"))
        spelled = [f"{name}{provider}" for provider in providers] if name.endswith("_") else [name]
        found.setdefault(plain, {plain}).update(spelled)
    return {name: tuple(sorted(found[name])) for name in sorted(found)}


@cache
def _names_in(library: Path) -> frozenset[str]:
    with library.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return frozenset(name for name in _identifiers(content) if _SOUNDS_LIKE_ONE.search(name))


def _identifiers(content: mmap.mmap) -> Iterator[str]:
    for match in _TEXT.finditer(content):
        if not match[1].startswith((b"N11onnxruntime", b"N4onnx")):
            yield match[1].decode()
    for match in _CLASS.finditer(content):
        if int(match[1]) == len(match[2]):
            yield match[2].decode()


class TransformerSwitches:
    """The transformers of one file at one optimization level; see `Switches`.

    Args:
        spellings: name of each part -> the names by which ONNX Runtime knows it.
        load: makes a session with parts switched off.
    """

    def __init__(self, spellings: Mapping[str, tuple[str, ...]], load: Load) -> None:
        self.names = tuple(spellings)
        self.spellings = spellings
        self._load = load

    def run(self, off: frozenset[str]) -> Executed:
        """Returns a session with these parts off; the optimized graph is made when it is asked for.

        With none off the session is the one that users get: the graph is written by a second session, because asking
        for it may change what is done.

        Raises:
            ValueError: a name is not among `names`.
        """
        unknown = sorted(off - set(self.names))
        if unknown:
            raise ValueError(f"expected names of graph transformers, got {', '.join(unknown)}")
        every = frozenset(name for part in off for name in self.spellings[part])
        return _Optimized(self._load(every, None), every, self._load)


class _Optimized(Executed):
    """A session whose graph is written when somebody looks at it."""

    def __init__(self, run: Callable[[Mapping[str, Any]], list[Any]], off: frozenset[str], load: Load) -> None:
        super().__init__(None, run)
        del self.__dict__["model"]
        self.__dict__["_off"], self.__dict__["_load"] = off, load

    @cached_property
    def model(self) -> Any:
        """The optimized graph, with its weights where they are small; None where it cannot be written."""
        with TemporaryDirectory(prefix="trueport-optimized-") as folder:
            path = Path(folder) / "optimized.onnx"
            try:
                self.__dict__["_load"](self.__dict__["_off"], path)
                return onnx.load(str(path), load_external_data=False)
            except Exception:  # noqa: BLE001 - kernels compiled by a provider, two gigabytes: not every graph is written
                return None
