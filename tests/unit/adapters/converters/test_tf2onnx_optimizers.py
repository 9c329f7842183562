"""What the adapter of tf2onnx says of its optimizers, whether they tell that they changed something or not."""

import copy
from collections.abc import Callable

import numpy as np
import pytest
from onnx import TensorProto

from trueport.adapters.sources.tensorflow_setup import import_tensorflow

import_tensorflow()

from tf2onnx import optimizer  # noqa: E402 - TensorFlow is told to be quiet first
from tf2onnx.graph import Graph  # noqa: E402
from tf2onnx.optimizer.optimizer_base import GraphOptimizerBase  # noqa: E402

from trueport.adapters.converters.tf2onnx import _equal, _optimize  # noqa: E402


def graph() -> Graph:
    made = Graph([], opset=18)
    made.add_graph_input("x:0", TensorProto.FLOAT, [3])
    factor = made.make_const("factor", np.full(3, 2.0, np.float32)).output[0]
    scaled = made.make_node("Mul", ["x:0", factor], name="scaled").output[0]
    made.make_node("LeakyRelu", [scaled], attr={"alpha": 0.3}, name="y", outputs=["y:0"])
    made.add_graph_output("y:0", TensorProto.FLOAT, [3])
    return made


def conditional() -> Graph:
    outer = Graph([], opset=18)
    outer.add_graph_input("c:0", TensorProto.BOOL, [])
    node = outer.make_node("If", ["c:0"], name="z", outputs=["z:0"], skip_conversion=True)
    node.set_body_graph_as_attr("then_branch", graph())
    outer.add_graph_output("z:0", TensorProto.FLOAT, [3])
    return outer


class Silent(GraphOptimizerBase):
    """Changes an attribute and does not say so."""

    def _optimize(self, given: Graph) -> Graph:
        next(n for n in given.get_nodes() if n.type == "LeakyRelu").set_attr("alpha", 0.1)
        return given


class Idle(GraphOptimizerBase):
    """Changes nothing."""

    def _optimize(self, given: Graph) -> Graph:
        return given


def test_a_change_is_seen_although_the_optimizer_does_not_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(optimizer, "_optimizers", {"idle": Idle, "silent": Silent, "idle-again": Idle})
    changed = {name: made is not None for name, made in _optimize(graph())}
    assert changed == {"after idle": False, "after silent": True, "after idle-again": False, "after all passes": True}


def _set_slope(given: Graph) -> None:
    next(n for n in given.get_nodes() if n.type == "LeakyRelu").set_attr("alpha", 0.2)


def _set_weight(given: Graph) -> None:
    given.get_node_by_name("factor").set_tensor_value(np.full(3, 2.5, np.float32))


def _set_type(given: Graph) -> None:
    given.set_dtype("y:0", TensorProto.DOUBLE)


def _rewire(given: Graph) -> None:
    given.get_node_by_name("y").input[0] = "x:0"


@pytest.mark.parametrize("edit", [_set_slope, _set_weight, _set_type, _rewire])
@pytest.mark.parametrize("nested", [False, True])
def test_whatever_is_changed_makes_graphs_unequal(edit: Callable[[Graph], None], nested: bool) -> None:
    before = conditional() if nested else graph()
    after = copy.deepcopy(before)
    assert _equal(before, after)
    edit(after.get_node_by_name("z").get_body_graphs()["then_branch"] if nested else after)
    assert not _equal(before, after)
