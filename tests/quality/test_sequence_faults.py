"""A pass that is wrong for a sequence of operators: the sequence is named, and none is for operators wrong alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import numpy as np
import onnx
import onnxoptimizer
import pytest
from onnx import helper, numpy_helper

from trueport.api.session import Session
from trueport.core.options import CheckOptions
from trueport.core.result import Check
from trueport.core.subject import Example, Subject
from trueport.core.taxonomy import Stage, Verdict

pytestmark = pytest.mark.slow

COUNT = 24
NAMED = 0.9
"""Share of the sequences that must be named exactly."""
PASS = "fuse_pad_into_pool"
SIZE = 5
# operator, attributes, whether it takes a second operand
OPERATORS: tuple[tuple[str, dict[str, Any], bool], ...] = (
    ("Transpose", {"perm": [1, 0]}, False), ("Sigmoid", {}, False), ("Softmax", {"axis": 0}, False),
    ("Tanh", {}, False),
    ("Sin", {}, False), ("Abs", {}, False), ("Elu", {"alpha": 0.7}, False), ("Softplus", {}, False), ("Neg", {}, False),
    ("LeakyRelu", {"alpha": 0.2}, False), ("Mul", {}, True), ("Add", {}, True), ("Sub", {}, True), ("MatMul", {}, True),
    ("HardSwish", {}, False), ("Softsign", {}, False), ("Erf", {}, False), ("Cos", {}, False),
)  # fmt: skip
INTO = {"Cos": "Sin"}


def chain(seed: int, length: int = 9) -> onnx.ModelProto:
    """Returns a chain of different operators on a square matrix, with a second output from its middle."""
    rng = np.random.default_rng(seed)
    chosen = rng.choice(len(OPERATORS), length, replace=False)
    nodes, weights, value = [], [], "x"
    for place, number in enumerate(chosen):
        operator, attributes, binary = OPERATORS[number]
        operands = [value]
        if binary:
            weights.append(numpy_helper.from_array(rng.standard_normal((SIZE, SIZE)).astype(np.float32), f"w{place}"))
            operands.append(f"w{place}")
        value = f"v{place}"
        nodes.append(helper.make_node(operator, operands, [value], **attributes))
    nodes.append(helper.make_node("Exp", [value], ["y"]))
    kind = [SIZE, SIZE]
    graph = helper.make_graph(
        nodes, "chain", [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, kind)],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, kind)], weights,
    )  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def rewritten(model: onnx.ModelProto, operators: tuple[str, ...]) -> onnx.ModelProto:
    """Turns the last operator of each such chain without other readers into `Cos`, or `Sin` where it is that."""
    copy = onnx.ModelProto.FromString(model.SerializeToString())
    outputs = {o.name for o in copy.graph.output}
    makers = {o: n for n in copy.graph.node for o in n.output}
    readers: dict[str, int] = {}
    for node in copy.graph.node:
        for name in node.input:
            readers[name] = readers.get(name, 0) + 1
    for node in copy.graph.node:
        current, matched = node, node.op_type == operators[-1]
        for wanted in reversed(operators[:-1]):
            value = current.input[0] if current.input else ""
            maker = makers.get(value)
            matched = matched and maker is not None and maker.op_type == wanted
            matched = matched and value not in outputs and readers[value] == 1
            if not matched or maker is None:
                matched = False
                break
            current = maker
        if matched:
            node.op_type = INTO.get(node.op_type, "Cos")
            del node.input[1:]
            del node.attribute[:]
    return copy


@contextmanager
def planted(operators: tuple[str, ...]) -> Iterator[None]:
    """Makes one pass of onnxoptimizer wrong for a sequence."""
    original: Callable[..., onnx.ModelProto] = onnxoptimizer.optimize

    def optimize(model: onnx.ModelProto, passes: Any = None, *rest: Any, **options: Any) -> onnx.ModelProto:
        made = original(model, passes, *rest, **options)
        return rewritten(made, operators) if passes is None or PASS in passes else made

    with mock.patch.object(onnxoptimizer, "optimize", optimize):
        yield


def checked(model: onnx.ModelProto) -> Check:
    """Returns the check of a model through onnxoptimizer."""
    feeds = {"x": np.random.default_rng(1).standard_normal((SIZE, SIZE)).astype(np.float32)}
    subject = Subject("chain", "onnx", "chain", "", model, (Example(kwargs=feeds),))
    options = CheckOptions(converters=("onnxoptimizer",), samples=1)
    return Session(subject, options, lambda _: None).run().checks[0]


def cases(first_seed: int, lengths: tuple[int, ...]) -> Iterator[tuple[int, onnx.ModelProto, tuple[str, ...]]]:
    """Yields models with operators that follow each other in them, where the optimizer as it is leaves them."""
    found, seed = 0, first_seed
    while found < COUNT:
        model = chain(seed)
        rng = np.random.default_rng([seed, 7])
        length = int(rng.choice(lengths))
        first = int(rng.integers(0, len(model.graph.node) - length + 1))
        operators = tuple(n.op_type for n in model.graph.node[first : first + length])
        optimized = onnxoptimizer.optimize(model)
        if rewritten(optimized, operators).SerializeToString() != optimized.SerializeToString():
            found += 1
            yield seed, model, operators
        seed += 1


def evidence(check: Check) -> dict[str, Any]:
    """Returns what the search says about the failure."""
    found = next((f.evidence["located"] for f in check.findings if "located" in f.evidence), {})
    return dict(found)


def test_sequences_are_named_exactly_with_their_pass() -> None:
    wrong = []
    for seed, model, operators in cases(0, (2, 3)):
        with planted(operators):
            check = checked(model)
        assert (check.verdict, check.stage) == (Verdict.DIVERGENT, Stage.OPTIMIZATION), (seed, check.explanation)
        told = evidence(check)
        search = told.get("sequence_search", {})
        right = search.get("outcome") == "sequence" and tuple(search["operators"]) == operators
        if not right or told.get("parts") != [PASS]:
            wrong.append((seed, operators, told.get("parts"), search))
    assert len(wrong) <= (1 - NAMED) * COUNT, wrong


def test_no_sequence_is_blamed_for_an_operator_that_is_wrong_alone() -> None:
    for seed, model, operators in cases(1000, (1,)):
        with planted(operators):
            check = checked(model)
        assert check.stage is Stage.OPTIMIZATION, (seed, operators, check.explanation)
        search = evidence(check).get("sequence_search", {})
        assert search.get("outcome") != "sequence", (seed, operators, search)
