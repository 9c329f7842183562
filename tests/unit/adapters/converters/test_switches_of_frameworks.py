"""The optimizers inside `torch.onnx` and tf2onnx with their parts switched off."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from trueport.adapters.converters import converter
from trueport.adapters.engines import source_engine
from trueport.adapters.protocols import Checkpoint, ConverterOptions
from trueport.adapters.sources import load_subject
from trueport.core.taxonomy import Stage
from trueport.locate.switches import smallest_on
from trueport.onnxgraph.changes import changes

# torch itself uses what it calls deprecated
pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")
TORCH = """
import torch
class Plain(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Sequential(torch.nn.Conv2d(2, 3, 3), torch.nn.BatchNorm2d(3), torch.nn.ReLU())
    def forward(self, x):
        y = self.inner(x).transpose(1, 2).transpose(1, 2)
        return torch.softmax(y.reshape(y.shape[0], -1) * 1.0, dim=-1)
def plain():
    return Plain().eval(), (torch.ones(1, 2, 5, 5),)
class Nothing(torch.nn.Module):
    def forward(self, x):
        return torch.sin(x)
def nothing():
    return Nothing(), (torch.ones(2, 3),)
"""
TENSORFLOW = """
import tensorflow as tf
@tf.function(input_signature=[tf.TensorSpec([1, 4, 4, 2], tf.float32)])
def plain(x):
    y = tf.nn.conv2d(x, tf.ones([2, 2, 2, 3]), 1, "SAME")
    y = tf.transpose(tf.transpose(tf.nn.relu(y), [0, 3, 1, 2]), [0, 2, 3, 1])
    return tf.identity(tf.reshape(tf.reshape(y, [4, 12]), [2, 24]))
@tf.function(input_signature=[tf.TensorSpec([2, 3], tf.float32)])
def nothing(x):
    return tf.sin(x)
"""


def checkpoints(tool: str, text: str, name: str, folder: Path, opset: int | None = None) -> tuple[Any, Any, Any, Any]:
    """Returns converter, options, the model before the optimization, and the model after it."""
    file = folder / "source.py"
    file.write_text(text)
    subject = source_engine(load_subject(f"{file}:{name}"), seed=0, dynamic=()).subject
    made, options = converter(tool), ConverterOptions(folder, opset, ("x",))
    found: list[Checkpoint] = list(made.convert(subject, options))
    before = next(c.model for c in found if c.stage == Stage.NODE_CONVERSION)
    after = [c.model for c in found if c.stage == Stage.OPTIMIZATION][-1]
    return made, options, before, after


@pytest.mark.parametrize("opset", [None, 23])
@pytest.mark.parametrize("name", ["plain", "nothing"])
def test_of_torch(name: str, opset: int | None, tmp_path: Path) -> None:
    made, options, before, after = checkpoints("torch-dynamo", TORCH, name, tmp_path, opset)
    switches = made.switches(before, options)
    assert switches is not None
    assert changes(switches.run(frozenset()).model, after).nothing
    assert not changes(before, switches.run(frozenset(switches.names)).model).removed
    assert ("fused: GQA" in switches.names) == (opset == 23)
    if name == "plain":
        found = smallest_on(switches.names, _gone(switches, "BatchNormalization"))
        assert found.on == ("patterns rewritten: FuseBatchNormIntoConv",)


@pytest.mark.parametrize("name", ["plain", "nothing"])
def test_of_tensorflow(name: str, tmp_path: Path) -> None:
    made, options, before, after = checkpoints("tf2onnx", TENSORFLOW, name, tmp_path)
    switches = made.switches(before, options)
    assert switches is not None
    assert changes(switches.run(frozenset()).model, after).nothing
    assert changes(before, switches.run(frozenset(switches.names)).model).nothing
    assert changes(switches.run(frozenset()).model, after).nothing
    assert made.switches(after, options) is None or name == "nothing"
    assert converter("tf2onnx").switches(before, options) is None
    if name == "plain":
        found = smallest_on(switches.names, lambda off: _count(switches, off, "Transpose") < _number(before))
        assert found.on == ("remove_back_to_back",)
        assert found.cures_alone == (True,)


def _gone(switches: Any, operator: str) -> Callable[[frozenset[str]], bool]:
    return lambda off: _count(switches, off, operator) == 0


def _count(switches: Any, off: frozenset[str], operator: str) -> int:
    return sum(node.op_type == operator for node in switches.run(off).model.graph.node)


def _number(model: Any) -> int:
    return sum(node.op_type == "Transpose" for node in model.graph.node)
