"""Operators on strings."""

from __future__ import annotations

import re

import numpy as np

from trueport.adapters.float64.onnx.dtypes import Array
from trueport.adapters.float64.onnx.registry import Call, kernel


@kernel("StringConcat", selects=True)
def string_concat(call: Call, x: Array, y: Array) -> Array:
    """Returns each string of x with that of y behind it; shapes broadcast."""
    del call
    return np.asarray(np.add(x.astype(object), y.astype(object)), dtype=object)


@kernel("StringSplit", selects=True)
def string_split(call: Call, x: Array) -> tuple[Array, Array]:
    """Returns the parts of each string along a new last axis, filled up with empty ones, and how many there are."""
    delimiter = call.attributes.get("delimiter") or None
    most = int(call.attributes.get("maxsplit", -1))
    parts = [_split(str(text), delimiter, most) for text in x.ravel()]
    counts = np.asarray([len(p) for p in parts], dtype=np.int64).reshape(x.shape)
    longest = max((len(p) for p in parts), default=0)
    table = np.full((len(parts), longest), "", dtype=object)
    for row, words in enumerate(parts):
        table[row, : len(words)] = words
    return table.reshape(*x.shape, longest), counts


def _split(text: str, delimiter: str | None, most: int) -> list[str]:
    if delimiter is None and most >= 0:
        # Python leaves white space behind the last part where it stops early.
        return [part.strip() for part in text.split(None, most)]
    return text.split(delimiter, most)


@kernel("StringNormalizer", selects=True)
def string_normalizer(call: Call, x: Array) -> Array:
    """Returns x, of shape [C] or [1, C], without its stop words, in another case; one empty string where none is left.

    Raises:
        ValueError: x has another shape.
    """
    if x.ndim not in (1, 2) or (x.ndim == 2 and x.shape[0] != 1):
        raise ValueError(f"expected strings of shape [C] or [1, C], got {list(x.shape)}")
    attributes = call.attributes
    exact = bool(attributes.get("is_case_sensitive", 0))
    stops = {word if exact else _cased(word, "LOWER") for word in attributes.get("stopwords") or ()}
    kept = [str(w) for w in x.ravel() if (str(w) if exact else _cased(str(w), "LOWER")) not in stops]
    words = [_cased(word, attributes.get("case_change_action", "NONE")) for word in kept] or [""]
    return np.asarray(words, dtype=object).reshape((1,) * (x.ndim - 1) + (-1,))


def _cased(text: str, action: str) -> str:
    """Returns the text in another case, character by character, as the functions of a locale do it."""
    if action == "NONE":
        return text
    changed = ((c, c.lower() if action == "LOWER" else c.upper()) for c in text)
    return "".join(new if len(new) == 1 else old for old, new in changed)


# Where RE2 and Python's expressions are written and mean the same: no reference back, no look around, no class by name.
_COMMON_ESCAPES = re.compile(r"\\(?![dDsSwWbBnrtfv.*+?()\[\]{}|^$\\/@_-])")
_OTHER_SYNTAX = re.compile(r"\(\?(?!:|P<[A-Za-z_]\w*>)|\[\[?:|[*+?}]\+")


def _is_common(call: Call) -> bool:
    pattern = str(call.attributes.get("pattern", ""))
    if _COMMON_ESCAPES.search(pattern.replace("\\\\", "")) or _OTHER_SYNTAX.search(pattern):
        return False
    try:
        re.compile(pattern, re.ASCII)
    except re.error:
        return False
    return True


@kernel("RegexFullMatch", selects=True, supports=_is_common)
def regex_full_match(call: Call, x: Array) -> Array:
    """Returns where the whole string matches an expression of RE2, whose classes of characters hold ASCII only."""
    expression = re.compile(call.attributes["pattern"], re.ASCII)
    found = [expression.fullmatch(str(text)) is not None for text in x.ravel()]
    return np.asarray(found, dtype=np.bool_).reshape(x.shape)
