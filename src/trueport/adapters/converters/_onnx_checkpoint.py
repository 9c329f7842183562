"""Checkpoints that are ONNX models: in memory, and as a file read back."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import onnx

from trueport.adapters.float64.onnx_program import OnnxProgram
from trueport.adapters.protocols import Checkpoint, ConverterOptions
from trueport.core.taxonomy import Stage


def model_checkpoint(
    stage: Stage, name: str, model: onnx.ModelProto, options: ConverterOptions, facts: Mapping[str, Any] | None = None
) -> Checkpoint:
    """Returns the checkpoint of a model in memory."""
    return Checkpoint(stage, name, OnnxProgram(model, options.input_names), model=model, facts=facts or {})


def file_checkpoint(
    name: str, path: Path, options: ConverterOptions, facts: Mapping[str, Any] | None = None
) -> Checkpoint:
    """Returns the checkpoint of a file on disk, read back with its external data."""
    model = onnx.load(str(path))
    program = OnnxProgram(model, options.input_names)
    return Checkpoint(Stage.EXPORT, name, program, model=model, path=path, facts=facts or {})
