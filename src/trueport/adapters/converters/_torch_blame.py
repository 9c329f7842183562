"""From an exception of the exporter to the operator and the line of the model that it came from.

Read from the frames of the traceback, never from the text of the message.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import torch

from trueport.core.result import NodeRef
from trueport.core.taxonomy import Role

_TORCH = str(Path(torch.__file__).parent)
_NOT_MODEL = (_TORCH, str(Path(__file__).parents[2]), "onnxscript", "onnx_ir", "<")


def blame(error: BaseException) -> tuple[NodeRef, ...]:
    """Returns the node that was being converted when the exception was raised, or the model's line that was running."""
    frames = list(_frames(error))
    for frame in reversed(frames):
        node = frame.f_locals.get("node")
        if isinstance(node, torch.fx.Node):
            return (_from_fx(node),)
        symbolic = frame.f_locals.get("n", frame.f_locals.get("node"))
        if isinstance(symbolic, torch._C.Node):
            return (_from_script(symbolic),)
    for frame in reversed(frames):
        path = frame.f_code.co_filename
        if not any(part in path for part in _NOT_MODEL) and "python3" not in path and "importlib" not in path:
            return (NodeRef("", "", _owner(frame), _line(path, frame.f_lineno), Role.CONCERNED),)
    return ()


def _frames(error: BaseException) -> Iterator[FrameType]:
    """Yields the frames of the exception and of those it came from, the outermost exception first."""
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        traceback = current.__traceback__
        while traceback is not None:
            yield _At(traceback.tb_frame, traceback.tb_lineno)  # type: ignore[misc]  # a frame with the line of the exception
            traceback = traceback.tb_next
        current = current.__cause__ or current.__context__


class _At:
    """A frame as it was when the exception passed through it."""

    def __init__(self, frame: FrameType, line: int) -> None:
        self.f_locals = frame.f_locals
        self.f_code = frame.f_code
        self.f_lineno = line


def _owner(frame: Any) -> str:
    module = frame.f_locals.get("self")
    return type(module).__name__ if isinstance(module, torch.nn.Module) else ""


def _from_fx(node: torch.fx.Node) -> NodeRef:
    stack = node.meta.get("nn_module_stack") or {}
    path = next(reversed(stack.values()), ("", ""))[0] if stack else ""
    return NodeRef(node.name, str(node.target), str(path), last_line(node.meta.get("stack_trace") or ""))


def _from_script(node: Any) -> NodeRef:
    scope = str(node.scopeName()).rsplit("/", 1)[-1].split("::")[-1]
    return NodeRef("", str(node.kind()), scope, last_line(str(node.sourceRange())))


def last_line(stack: str) -> str:
    """Returns `file.py:LINE` of the innermost line of a stack that is no part of a framework."""
    found = re.findall(r'(?:File )?"?([^\s"]+\.py)"?(?:, line |\()(\d+)', stack)
    own = [(path, line) for path, line in found if not any(part in path for part in _NOT_MODEL)]
    chosen = own or found
    return _line(*chosen[-1]) if chosen else ""


def _line(path: str, line: Any) -> str:
    return f"{Path(path).name}:{line}"
