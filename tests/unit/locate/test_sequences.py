"""The smallest sequence that an optimizer gets wrong, with optimizers that are wrong in known ways."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import parser

from tests.unit.onnxgraph.test_cut import recorded, run
from trueport.adapters.runtimes.onnxruntime import OnnxRuntime
from trueport.locate.sequences import Outcome, Wrong, occurrences, smallest_sequence
from trueport.onnxgraph.cut import Cutter

HEAD = '<ir_version: 9, opset_import: ["": 18]> g '
CHAIN = """(float[2,6] x) => (float[6,2] y, float[6,2] z) {
    a = Exp (x)
    t = Transpose <perm = [1, 0]> (a)
    s = Sigmoid (t)
    r = Softmax <axis = 0> (s)
    y = Neg (r)
    u = Transpose <perm = [1, 0]> (x)
    z = Sigmoid (u)
}"""
X = {"x": np.linspace(-1, 2, 12, dtype=np.float32).reshape(2, 6)}
Optimizer = Callable[[onnx.ModelProto], onnx.ModelProto]


def fuse(*operators: str, into: str, apart: bool = False) -> Optimizer:
    """An optimizer that turns a chain of operators, without other readers, into the first one of another type."""

    def optimized(model: onnx.ModelProto) -> onnx.ModelProto:
        model = onnx.ModelProto.FromString(model.SerializeToString())
        outputs = {o.name for o in model.graph.output}
        for node in list(model.graph.node):
            chain = [node]
            while len(chain) < len(operators):
                readers = [n for n in model.graph.node if chain[-1].output[0] in n.input]
                if len(readers) != 1 or chain[-1].output[0] in outputs:
                    break
                chain.append(readers[0])
            if tuple(n.op_type for n in chain) == operators:
                chain[-1].op_type = into
                del chain[-1].attribute[:]
        return model

    return optimized


def judged(optimizer: Optimizer) -> Wrong:
    def wrong(model: onnx.ModelProto, feeds: Mapping[str, Any]) -> bool | None:
        right, other = run(model, dict(feeds)), run(optimizer(model), dict(feeds))
        return not all(a.shape == b.shape and np.allclose(a, b) for a, b in zip(right, other, strict=True))

    return wrong


def cutter_of(text: str, feeds: dict[str, Any]) -> Cutter:
    model = parser.parse_model(HEAD + text)
    return Cutter(model, recorded(model, feeds))


@pytest.mark.parametrize(
    "operators", [("Transpose", "Sigmoid", "Softmax"), ("Sigmoid", "Softmax"), ("Exp", "Transpose", "Sigmoid")]
)
@pytest.mark.parametrize("removed", [["t", "s", "r"], ["a", "t", "s", "r", "y", "u", "z"], ["s"]])
def test_the_sequence_is_named_exactly(operators: tuple[str, ...], removed: list[str]) -> None:
    cutter = cutter_of(CHAIN, X)
    found = smallest_sequence(cutter, removed, judged(fuse(*operators, into="Tanh")))
    assert (found.outcome, found.operators) == (Outcome.SEQUENCE, operators)
    assert found.barrier is True
    assert found.complete


def test_a_single_operator_is_no_sequence() -> None:
    cutter = cutter_of(CHAIN, X)
    found = smallest_sequence(cutter, ["t", "s", "r"], judged(fuse("Sigmoid", into="Tanh")))
    assert (found.outcome, found.operators) == (Outcome.SINGLE, ("Sigmoid",))


def test_a_right_optimizer_is_blamed_for_nothing() -> None:
    found = smallest_sequence(cutter_of(CHAIN, X), ["t", "s", "r"], judged(lambda model: model))
    assert found.outcome is Outcome.NOT_REPRODUCED


def test_what_cannot_be_judged_proves_nothing() -> None:
    wrong = judged(fuse("Sigmoid", "Softmax", into="Tanh"))

    def sometimes(model: onnx.ModelProto, feeds: Mapping[str, Any]) -> bool | None:
        return None if len(model.graph.node) == 1 else wrong(model, feeds)

    found = smallest_sequence(cutter_of(CHAIN, X), ["s", "r"], sometimes)
    assert (found.outcome, found.operators) == (Outcome.UNPROVEN, ("Sigmoid", "Softmax"))


def test_the_limit_ends_the_search_and_is_said() -> None:
    wrong = judged(fuse("Exp", "Transpose", "Sigmoid", "Softmax", "Neg", into="Tanh"))
    found = smallest_sequence(cutter_of(CHAIN, X), ["a", "t", "s", "r", "y"], wrong, most_tries=7)
    assert not found.complete
    assert found.outcome is Outcome.UNPROVEN


def test_a_value_that_others_read_as_well_stays_inside() -> None:
    """The whole graph reads `s` twice; the fault needs no second reader."""
    text = "(float[4] x) => (float[4] y, float[4] z) { s = Sigmoid (x) \n y = Neg (s) \n z = Exp (s) }"
    found = smallest_sequence(
        cutter_of(text, {"x": np.arange(4, dtype=np.float32)}), ["s", "y"], judged(fuse("Sigmoid", "Neg", into="Tanh"))
    )
    assert found.operators == ("Sigmoid", "Neg")


def test_other_places_with_the_same_sequence() -> None:
    cutter = cutter_of(CHAIN, X)
    assert occurrences(cutter, cutter.numbers(["t", "s"])) == [cutter.numbers(["u", "z"])]
    assert occurrences(cutter, cutter.numbers(["s", "r"])) == []


def test_two_rewrites_of_onnxruntime_that_remove_a_producer_together(tmp_path: Path) -> None:
    """What ONNX Runtime 1.32 refuses after its own optimizations, in a larger graph."""
    text = """(float[4] x, float[4] d) => (float[4] y) <float one = {1}> {
        e = Exp (x)
        same = Cast <to = 1> (e)
        positive = Abs (d)
        reciprocal = Div (one, positive)
        scaled = Mul (reciprocal, same)
        y = Neg (scaled)
    }"""
    feeds = {"x": np.array([1, 2, 3, 4], np.float32), "d": np.array([2, 4, 8, 16], np.float32)}
    found = smallest_sequence(cutter_of(text, feeds), ["same", "reciprocal", "scaled"], by_onnxruntime(tmp_path))
    assert found.outcome is Outcome.SEQUENCE
    assert found.operators == ("Cast", "Div", "Mul")
    assert found.barrier is True


def by_onnxruntime(folder: Path, on: frozenset[str] | None = None) -> Wrong:
    """ONNX Runtime's optimizer, all of it or these transformers only, against the same file without."""

    def wrong(model: onnx.ModelProto, feeds: Mapping[str, Any]) -> bool | None:
        path = folder / "part.onnx"
        onnx.save(model, str(path))
        parts = OnnxRuntime().switches(path)
        every = frozenset(parts.names)
        try:
            right = parts.run(every).run(feeds)
        except Exception:  # noqa: BLE001 - there is nothing to compare with
            return None
        try:
            other = parts.run(frozenset() if on is None else every - on).run(feeds)
        except Exception:  # noqa: BLE001 - that it raises is what is asked
            return True
        return not all(np.allclose(a, b) for a, b in zip(right, other, strict=True))

    return wrong
