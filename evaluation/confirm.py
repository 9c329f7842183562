"""Repeats a zoo check without the oracle: plain export, a default session, the eager module, on the same inputs.

    python -m evaluation.confirm NAME/CONVERTER/AXES

prints for every input set the largest difference between the eager module and the runtime, and between the eager
module and itself in double precision. Only the inputs come from trueport. What it shows is written by hand into
`docs/results/zoo/confirmed.toml`.
"""

from __future__ import annotations

import copy
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import torch
from torch.utils import _pytree as pytree

from evaluation.wording import number, table
from trueport.adapters.sources import load_subject
from trueport.api.session import Session, named_axes, quiet
from trueport.core.options import CheckOptions
from trueport.core.subject import Subject
from trueport.inputs.draw import InputSet, draw_inputs


def confirm(key: str) -> str:
    """Returns a table of plain differences on every input set."""
    name, converter, axes = key.split("/")
    subject = load_subject(f"zoo:hf/{name}")
    session = Session(subject, CheckOptions(), lambda _: None)
    dynamic = axes == "batch"
    sets = draw_inputs(session.specs, samples=3, seed=0)
    if not dynamic:
        sets = [s for s in sets if not s.sizes]
    wide = copy.deepcopy(subject.model).double()
    with tempfile.TemporaryDirectory(prefix="trueport-confirm-") as folder:
        runtime = _export(session, Path(folder) / "model.onnx", converter, dynamic=dynamic)
        rows = [(s.label, *_differences(subject, wide, runtime, s)) for s in sets if s.regime != "nonfinite"]
    return table(("input", "largest |eager|", "eager - runtime", "eager - double", "where"), rows)


def _export(session: Session, path: Path, converter: str, *, dynamic: bool) -> onnxruntime.InferenceSession:
    subject = session.subject
    args = tuple(subject.examples[0].args)
    with quiet(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if converter == "torch-dynamo":
            shapes = subject.dynamic_shapes if dynamic else None
            torch.onnx.export(subject.model, args, str(path), dynamo=True, verbose=False, dynamic_shapes=shapes)
        else:
            options: dict[str, Any] = {"input_names": list(session.names)}
            if dynamic:
                options["dynamic_axes"] = named_axes(session.axes)
            torch.onnx.export(subject.model, args, str(path), dynamo=False, verbose=False, **options)
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(str(path), settings, providers=["CPUExecutionProvider"])


def _differences(
    subject: Subject, wide: torch.nn.Module, runtime: onnxruntime.InferenceSession, inputs: InputSet
) -> tuple[str, ...]:
    tensors = [torch.from_numpy(np.array(array)) for array in inputs.arrays]
    try:
        with torch.no_grad():
            eager = pytree.tree_leaves(subject.model(*tensors))
            double = pytree.tree_leaves(wide(*(t.double() if t.is_floating_point() else t for t in tensors)))
    except Exception as error:  # noqa: BLE001 - an input that the source refuses says nothing
        return ("-", "-", "-", f"refused by the source: {type(error).__name__}")
    feeds = {node.name: t.numpy() for node, t in zip(runtime.get_inputs(), tensors, strict=True)}
    try:
        found = runtime.run(None, feeds)
    except Exception as error:  # noqa: BLE001 - what the runtime raises is the result
        return (number(_largest(eager)), "-", "-", f"{type(error).__name__}: {str(error)[:300]}")
    if [tuple(t.shape) for t in eager] != [a.shape for a in found]:
        return (
            number(_largest(eager)),
            "-",
            "-",
            f"shapes {[tuple(t.shape) for t in eager]}, {[a.shape for a in found]}",
        )
    apart = [np.abs(t.double().numpy() - a) for t, a in zip(eager, found, strict=True)]
    output = int(np.argmax([a.max(initial=0) for a in apart]))
    place = tuple(int(i) for i in np.unravel_index(int(apart[output].argmax()), apart[output].shape))
    own = max(float((a.double() - b).abs().max()) for a, b in zip(eager, double, strict=True))
    return (number(_largest(eager)), number(float(apart[output].max())), number(own), f"output {output}{list(place)}")


def _largest(values: list[torch.Tensor]) -> float:
    return max(float(value.double().abs().max()) for value in values)


if __name__ == "__main__":
    torch.set_num_threads(1)
    for given in sys.argv[1:]:
        print(f"{given}\n\n{confirm(given)}\n")
