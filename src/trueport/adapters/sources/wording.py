"""How values and names are put into messages: short, and never the content of a tensor."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Iterable
from typing import Any

_MOST_NAMES = 12


def described(value: Any) -> str:
    """Returns what `value` is: `float32[2, 3]` for tensors and arrays, else its type, else a short constant."""
    if hasattr(value, "dtype") and hasattr(value, "shape") and not isinstance(value, type):
        return f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)}"
    if value is None or isinstance(value, bool | int | float):
        return repr(value)
    if isinstance(value, str):
        return repr(value if len(value) <= 40 else value[:37] + "...")
    if isinstance(value, tuple | list) and len(value) <= 4:
        inner = ", ".join(described(item) for item in value)
        return f"({inner})" if isinstance(value, tuple) else f"[{inner}]"
    if isinstance(value, type):
        return f"the class {value.__module__}.{value.__qualname__}"
    return f"{type(value).__module__}.{type(value).__qualname__}".removeprefix("builtins.")


def listed(names: Iterable[str]) -> str:
    """Returns the names for a message; of many it gives the first ones and says how many were left out."""
    every = list(names)
    shown = ", ".join(every[:_MOST_NAMES]) or "(none)"
    return shown if len(every) <= _MOST_NAMES else f"{shown} and {len(every) - _MOST_NAMES} more"


def did_you_mean(name: str, candidates: Iterable[str]) -> str:
    """Returns `"; did you mean 'x' or 'y'?"`, or nothing when no candidate is near."""
    near = difflib.get_close_matches(name, list(candidates), n=3, cutoff=0.6)
    return f"; did you mean {' or '.join(repr(n) for n in near)}?" if near else ""


def choices(name: str, candidates: Iterable[str], what: str) -> str:
    """Returns the end of a message about an unknown name: what is near, and `what` there is to choose from."""
    every = list(candidates)
    near = did_you_mean(name, every)
    return f"{near} {what[:1].upper()}{what[1:]}: {listed(every)}" if near else f"; {what}: {listed(every)}"


def without_annotations(signature: inspect.Signature) -> str:
    """Returns the signature as text with names and defaults only, short enough for a message."""
    plain = [p.replace(annotation=inspect.Parameter.empty) for p in signature.parameters.values()]
    return str(inspect.Signature(plain))
