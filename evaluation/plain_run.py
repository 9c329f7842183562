"""A conversion as users do it: plain export, default session, eager run, one thread; on the example alone."""

from __future__ import annotations

import copy
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import torch
from torch import nn
from torch.utils import _pytree as pytree

from evaluation.rules import Outputs
from trueport.api.session import quiet


def run(module: nn.Module, args: tuple[Any, ...], *, converter: str, dynamic_shapes: Any) -> list[Outputs]:
    """Returns the outputs of all sides; what the exporter or the runtime raises goes on."""
    with tempfile.TemporaryDirectory(prefix="trueport-plain-") as folder, quiet(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(folder) / "model.onnx"
        _export(module, args, path, converter, dynamic_shapes)
        candidate = _runtime(path, args)
    with torch.no_grad():
        eager = pytree.tree_leaves(module(*_copied(args)))
    wide = _in_double(module, args, len(eager))
    if len(candidate) != len(eager):
        raise ValueError(f"expected {len(eager)} outputs, got {len(candidate)}")
    return [Outputs(*sides) for sides in zip(eager, candidate, wide, strict=True)]


def _export(module: nn.Module, args: tuple[Any, ...], path: Path, converter: str, dynamic_shapes: Any) -> None:
    if converter == "torch-dynamo":
        torch.onnx.export(module, _copied(args), str(path), dynamo=True, verbose=False, dynamic_shapes=dynamic_shapes)
        return
    options: dict[str, Any] = {}
    if dynamic_shapes:
        names = [f"input_{place}" for place in range(len(args))]
        named = {
            name: {axis: f"{name}_{axis}" for axis in axes}
            for name, axes in zip(names, _axes(dynamic_shapes), strict=True)
            if axes
        }
        options = {"input_names": names, "dynamic_axes": named}
    torch.onnx.export(module, _copied(args), str(path), dynamo=False, verbose=False, **options)


def _axes(shapes: Any) -> Iterator[dict[int, Any]]:
    """Returns the dynamic axes of each input, whatever the structure around them."""
    if shapes is None or (isinstance(shapes, dict) and all(isinstance(key, int) for key in shapes)):
        yield shapes or {}
        return
    for part in shapes.values() if isinstance(shapes, dict) else shapes:
        yield from _axes(part)


def _runtime(path: Path, args: tuple[Any, ...]) -> list[torch.Tensor]:
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = settings.inter_op_num_threads = 1
    settings.log_severity_level = 4
    session = onnxruntime.InferenceSession(str(path), settings, providers=["CPUExecutionProvider"])
    names = [node.name for node in session.get_inputs()]
    feeds = dict(zip(names, (leaf.numpy() for leaf in pytree.tree_leaves(args)), strict=True))
    return [torch.from_numpy(np.asarray(value)) for value in session.run(None, feeds)]


def _in_double(module: nn.Module, args: tuple[Any, ...], count: int) -> list[torch.Tensor | None]:
    """The module under `.double()`, which is what such a reference usually is."""
    try:
        with torch.no_grad():
            found = pytree.tree_leaves(copy.deepcopy(module).double()(*pytree.tree_map(_double, args)))
    except Exception:  # noqa: BLE001 - without that reference the rule falls back to its other half
        return [None] * count
    return found if len(found) == count else [None] * count


def _double(leaf: Any) -> Any:
    return leaf.double() if isinstance(leaf, torch.Tensor) and leaf.is_floating_point() else leaf


def _copied(args: tuple[Any, ...]) -> Any:
    return pytree.tree_map(lambda leaf: leaf.clone() if isinstance(leaf, torch.Tensor) else leaf, args)
