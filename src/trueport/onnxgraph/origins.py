"""Where a node came from, as converters write it into `metadata_props`."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass

_FX_NODE = re.compile(r"%(\w+)\s*:")
_FRAME = re.compile(r'File "([^"]+)", line (\d+)')
_FRAMEWORKS = ("/torch/", "/onnxscript/", "/transformers/utils/", "/trueport/")


@dataclass(frozen=True)
class Origin:
    """The source's node, the module that it belongs to, and `file.py:LINE`; '' for what is not known."""

    name: str = ""
    module: str = ""
    source: str = ""


def origin_of(metadata: Mapping[str, str]) -> Origin:
    """Returns what the exporter of PyTorch says about a node; nothing of it is trusted for a verdict."""
    found = _FX_NODE.match(metadata.get("pkg.torch.onnx.fx_node", ""))
    return Origin(
        found.group(1) if found else "",
        _module(metadata.get("pkg.torch.onnx.name_scopes", "")),
        source_of_stack(metadata.get("pkg.torch.onnx.stack_trace", "")),
    )


def source_of_stack(stack: str) -> str:
    """Returns `file.py:LINE` of the innermost frame that is not a framework's, from a stack trace as text."""
    frames = [(path, line) for path, line in _FRAME.findall(stack) if not any(part in path for part in _FRAMEWORKS)]
    return f"{frames[-1][0].rpartition('/')[2]}:{frames[-1][1]}" if frames else ""


def _module(scopes: str) -> str:
    try:
        parts = ast.literal_eval(scopes)
    except (ValueError, SyntaxError):
        return ""
    named = [part for part in parts[:-1] if isinstance(part, str) and part] if isinstance(parts, list) else []
    return named[-1] if named else ""
