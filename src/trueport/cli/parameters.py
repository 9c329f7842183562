"""How the values of options are written, one `ParamType` each; every error says what was expected and what came."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trueport.core.errors import UsageError
from trueport.core.options import DynamicAxis, Tolerance, ToleranceKind

if TYPE_CHECKING:
    # Newer releases of click declare this class generic, older ones fail on the subscript.
    _ParamType = click.ParamType[Any, Any]
else:
    _ParamType = click.ParamType

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_SHAPE = re.compile(r"(?P<name>.+):\[(?P<sizes>[^\[\]]*)\]")
_DYNAMIC = re.compile(
    r"(?P<input>.+):(?P<axis>\d+)=(?P<symbol>[A-Za-z_]\w*)(?::(?P<minimum>\d+)-(?P<maximum>\d*))?", re.ASCII
)
_OBJECT_IN_FILE = re.compile(r"(?P<file>.+\.py):(?P<name>[^\W\d]\w*)", re.IGNORECASE)
NO_LIMIT = "none"
FAIL_ON = ("divergent", "crashed", "inconclusive", "material")


class _Text(_ParamType):
    """A parameter that is parsed from text once; a value that is no text (a default) stays as it is."""

    name = "text"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Returns the parsed value or fails with the message of `parse`."""
        if not isinstance(value, str):
            return value
        try:
            return self.parse(value.strip())
        except UsageError as error:
            self.fail(str(error), param, ctx)

    def parse(self, text: str) -> Any:
        """Returns the value that a text stands for; raises `UsageError`."""
        raise NotImplementedError


class NameList(_Text):
    """`a,b` -> ("a", "b"); each name once."""

    name = "names"

    def __init__(self, example: str) -> None:
        self._example = example

    def parse(self, text: str) -> tuple[str, ...]:
        """Returns the names in the order in which they were given."""
        names = [part.strip() for part in text.split(",")]
        bad = next((name for name in names if not _NAME.fullmatch(name)), None)
        if bad is not None:
            raise UsageError(f"expected names separated by commas such as '{self._example}', got '{text}'")
        return tuple(dict.fromkeys(names))


class Converters(NameList):
    """Names, or one command of the user's own that begins with `cmd:`."""

    name = "converters"

    def parse(self, text: str) -> tuple[str, ...]:
        """Returns the names; a command is taken whole, commas and all."""
        return (text,) if text.startswith("cmd:") else super().parse(text)


class FailOn(NameList):
    """What makes the exit code other than 0."""

    def __init__(self) -> None:
        super().__init__(",".join(FAIL_ON[:3]))

    def parse(self, text: str) -> tuple[str, ...]:
        """Returns known names only."""
        names = super().parse(text)
        for name in names:
            if name not in FAIL_ON:
                raise UsageError(f"expected some of {', '.join(FAIL_ON)}, separated by commas, got '{name}'")
        return names


class NamePair(_Text):
    """`input=name` -> ("input", "name")."""

    name = "pair"

    def parse(self, text: str) -> tuple[str, str]:
        """Splits at the first `=`: the source's names are identifiers, those of an ONNX file are anything."""
        source, equals, candidate = text.partition("=")
        if not (source and equals and candidate):
            raise UsageError(
                f"expected the name of an input of the source and of the candidate such as 'x=input_1', got '{text}'"
            )
        return source, candidate


class Shape(_Text):
    """`name:[1,3,224,224]` -> ("name", (1, 3, 224, 224))."""

    name = "shape"

    def parse(self, text: str) -> tuple[str, tuple[int, ...]]:
        """Returns a name and sizes >= 0; `name:[]` is a scalar."""
        match = _SHAPE.fullmatch(text)
        sizes = [size.strip() for size in match["sizes"].split(",")] if match and match["sizes"].strip() else []
        if match is None or not all(size.isascii() and size.isdecimal() for size in sizes):
            raise UsageError(f"expected an input and its sizes such as 'x:[1,3,224,224]', got '{text}'")
        return match["name"], tuple(int(size) for size in sizes)


class Dynamic(_Text):
    """`name:AXIS=SYMBOL[:MIN-MAX]` -> `DynamicAxis`."""

    name = "axis"

    def parse(self, text: str) -> DynamicAxis:
        """Returns the axis; without MAX it may grow without limit."""
        match = _DYNAMIC.fullmatch(text)
        if match is None:
            raise UsageError(f"expected an axis such as 'x:0=batch' or 'x:0=batch:1-64', got '{text}'")
        return DynamicAxis(
            input=match["input"],
            axis=int(match["axis"]),
            symbol=match["symbol"],
            minimum=int(match["minimum"] or 1),
            maximum=int(match["maximum"]) if match["maximum"] else None,
        )


class Limit(_Text):
    """A positive number, or `none` for no limit."""

    name = "limit"

    def __init__(self, unit: str, *, whole: bool) -> None:
        self._unit = unit
        self._whole = whole

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Returns the number, or `NO_LIMIT`."""
        if isinstance(value, int | float) and not isinstance(value, bool):
            return super().convert(repr(value), param, ctx)
        return super().convert(value, param, ctx)

    def parse(self, text: str) -> float | int | str:
        """Returns the number, or the text `none`: click takes None for an option that was not given."""
        if text.lower() == NO_LIMIT:
            return NO_LIMIT
        try:
            value = int(text) if self._whole else float(text)
        except ValueError:
            value = math.nan
        if not (math.isfinite(value) and value > 0):
            kind = "a whole number" if self._whole else "a number"
            raise UsageError(f"expected {kind} of {self._unit} > 0, or 'none', got '{text}'")
        return value


class ToleranceParameter(_Text):
    """`measured` or `rtol=1e-3,atol=1e-5` -> `Tolerance`."""

    name = "tolerance"

    def parse(self, text: str) -> Tolerance:
        """Returns the tolerance; of rtol and atol one may be left out and is 0."""
        if text == ToleranceKind.MEASURED:
            return Tolerance()
        values: dict[str, float] = {}
        for part in text.split(","):
            name, _, number = part.partition("=")
            try:
                value = float(number)
            except ValueError:
                value = None
            if name.strip() not in ("rtol", "atol") or name.strip() in values or value is None:
                raise UsageError(f"expected 'measured' or 'rtol=1e-3,atol=1e-5', got '{text}'")
            values[name.strip()] = value
        return Tolerance(ToleranceKind.FIXED, **values)


class ExistingFile(_Text):
    """A file that can be read, with one of the suffixes if any are given."""

    name = "file"

    def __init__(self, *suffixes: str) -> None:
        self._suffixes = suffixes

    def parse(self, text: str) -> str:
        """Returns the path as it was written."""
        if self._suffixes and not text.lower().endswith(self._suffixes):
            raise UsageError(f"expected a file that ends with {' or '.join(self._suffixes)}, got '{text}'")
        return _existing(text)


class ObjectInFile(_Text):
    """`file.py:NAME`."""

    name = "object"

    def parse(self, text: str) -> str:
        """Returns the text when the file exists; the name is looked up where code may run."""
        match = _OBJECT_IN_FILE.fullmatch(text)
        if match is None:
            raise UsageError(f"expected 'file.py:NAME', got '{text}'")
        _existing(match["file"])
        return text


class Inputs(_Text):
    """`file.npz` or `file.py[:NAME]`."""

    name = "inputs"

    def parse(self, text: str) -> str:
        """Returns the text when the file exists."""
        match = _OBJECT_IN_FILE.fullmatch(text)
        if match is None and not text.lower().endswith((".npz", ".py")):
            raise UsageError(f"expected 'file.npz' or 'file.py:NAME', got '{text}'")
        _existing(match["file"] if match else text)
        return text


class Folder(_Text):
    """A folder that exists or can be made."""

    name = "folder"

    def parse(self, text: str) -> str:
        """Returns the path as it was written."""
        path = Path(text)
        if not text or (path.exists() and not path.is_dir()):
            raise UsageError(f"expected a folder or a name for a new one, got '{text}'")
        return text


class JsonTarget(_Text):
    """`-` or a file in a folder that exists: better to know before an hour of work than after it."""

    name = "json"

    def parse(self, text: str) -> str:
        """Returns `-` or the path as it was written."""
        path = Path(text)
        if text != "-" and (not text or path.is_dir() or not path.absolute().parent.is_dir()):
            raise UsageError(f"expected '-' or a file in a folder that exists, got '{text}'")
        return text


def _existing(text: str) -> str:
    path = Path(text)
    if not path.is_file():
        raise UsageError(f"expected a file, got '{text}', which {'is a folder' if path.is_dir() else 'does not exist'}")
    return text
