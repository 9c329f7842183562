"""The checker and strict shape inference: opinions about a file, never a verdict."""

from __future__ import annotations

from pathlib import Path

import onnx
import onnx.checker
import onnx.shape_inference


def complaints(path: Path) -> list[str]:
    """Returns what ONNX's checker and its strict shape inference have against a file; empty when both accept it."""
    found = []
    try:
        onnx.checker.check_model(str(path))
    except Exception as error:  # noqa: BLE001 - the checker raises whatever its parser meets
        found.append(f"checker: {first_line(error)}")
    try:
        onnx.checker.check_model(str(path), full_check=True)
    except Exception as error:  # noqa: BLE001 - as above
        message = f"shape inference: {first_line(error)}"
        if not found:
            found.append(message)
    return found


def first_line(error: BaseException) -> str:
    """Returns the first line of an exception's message that is not empty, or its type."""
    for line in str(error).splitlines():
        if line.strip():
            return line.strip()[:300]
    return type(error).__name__
