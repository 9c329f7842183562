"""What in a `.pt2` file would run code while it is loaded.

`torch.export.load` does more than read tensors.  In torch 2.13 it unpickles without `weights_only` what is
stored with `use_pickle`, opaque constants, and **the sample inputs whenever the safe unpickler refuses them**; it
opens compiled libraries, evaluates the size expressions with sympy (which uses `eval`), executes the guards, looks
operators up by dotted name, and imports modules that tree specifications name.  A file is loaded without the user's
word only when none of this can reach beyond arithmetic.  The archive is read here with torch's own reader, because
another zip reader may see other members.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from trueport.adapters.sources.pt2_expressions import unsafe_expression, unsafe_guard, unsafe_operator

# Names, dtypes, tree types and devices are written with these; brackets, quotes and line breaks would let a name
# become code in the Python that torch.fx generates from the graph.
_PLAIN = re.compile(r"[\w.:<>=*+\-,/@ ]*")
_TREE_TYPES = frozenset(
    {"builtins.tuple", "builtins.list", "builtins.dict", "collections.OrderedDict", "builtins.None"}
)
_NATIVE_CODE = re.compile(r"data/aotinductor/.*|data/(executorch|mtia)/.*")


def reasons_to_refuse(path: Path) -> list[str]:
    """Returns what in the archive could run code when loaded, one sentence each; empty for a harmless one.

    Raises:
        RuntimeError: torch's reader cannot read the archive, or a record that it needs is missing.
    """
    from torch.export.pt2_archive._package import PT2ArchiveReader

    with PT2ArchiveReader(str(path)) as reader:
        return list(_reasons(reader, reader.get_file_names()))


def _reasons(reader: Any, names: list[str]) -> Iterator[str]:
    for name in names:
        if _NATIVE_CODE.match(name):
            yield f"record {name} holds compiled code"
        elif re.match(r"data/(weights|constants)/[^/]*\.pt$", name):
            yield f"record {name} is a pickle of an old format"
        elif re.match(r"data/constants/(custom|opaque)_obj_", name):
            yield f"record {name} is a pickled object"
        elif name.startswith("data/sample_inputs/"):
            yield from _unsafe_pickle(name, reader.read_bytes(name))
        elif re.match(r"data/(weights|constants)/.*_config\.json$", name):
            yield from _pickled_payloads(name, json.loads(reader.read_string(name)))
        elif name.startswith("models/"):
            yield from _unsafe_strings(name, json.loads(reader.read_string(name)), ())


def _unsafe_pickle(name: str, content: bytes) -> Iterator[str]:
    if not content:
        return
    try:
        torch.load(io.BytesIO(content), weights_only=True)
    except Exception:  # noqa: BLE001 - whatever stops the safe unpickler makes torch fall back to the unsafe one
        yield f"record {name} holds objects other than tensors and plain containers"


def _pickled_payloads(name: str, config: Any) -> Iterator[str]:
    entries = config.get("config", {}) if isinstance(config, dict) else {}
    for key, entry in entries.items():
        if entry.get("use_pickle"):
            yield f"tensor {key!r} of {name} is stored as a pickle"


def _unsafe_strings(name: str, value: Any, where: tuple[str, ...]) -> Iterator[str]:
    """Walks the program's JSON; every string is judged by the place in which it stands."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if key == "metadata":  # stack traces and module names: shown, never run
                continue
            yield from _judged(name, key, (*where, "(name)"))
            yield from _unsafe_strings(name, inner, (*where, key))
    elif isinstance(value, list):
        for inner in value:
            yield from _unsafe_strings(name, inner, where)
    elif isinstance(value, str):
        yield from _judged(name, value, where)


def _judged(name: str, text: str, where: tuple[str, ...]) -> Iterator[str]:
    last = where[-1] if where else ""
    if last == "as_string":  # an argument of an operator; torch.fx writes it with repr
        return
    if last in ("in_spec", "out_spec"):
        yield from _unsafe_tree(name, text)
        return
    judge = {
        "expr_str": unsafe_expression,
        "guards_code": unsafe_guard,
        "as_operator": unsafe_operator,
        "target": unsafe_operator if where[-2:] == ("nodes", "target") else _unsafe_name,
    }.get(last, _unsafe_name)
    reason = judge(text)
    if reason is not None:
        yield f"{name}: {reason} ({'.'.join(where)})"


def _unsafe_name(text: str) -> str | None:
    return None if _PLAIN.fullmatch(text) else f"the name {_short(text)} could become code"


def _unsafe_tree(name: str, text: str) -> Iterator[str]:
    try:
        nodes = list(_tree_nodes(json.loads(text)[1]))
    except (ValueError, LookupError, TypeError):
        yield f"{name}: a tree specification cannot be read"
        return
    for node in nodes:
        if node.get("type") not in _TREE_TYPES | {None}:
            yield f"{name}: a structure of type {_short(str(node.get('type')))} builds an object of that class"
        context = node.get("context")
        if isinstance(context, str) and not re.fullmatch(r"[\w.\-/:, \[\]\"]*", context):
            yield f"{name}: a structure has the keys {_short(context)}, which could become code"


def _tree_nodes(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield node
    for child in node.get("children_spec") or ():
        yield from _tree_nodes(child)


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")
