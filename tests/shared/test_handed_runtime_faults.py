"""The handed faults of runtimes, located: the kernel, the graph transformers, the sequence of operators."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from tests.shared.test_handed_cases import FOLDER, load
from tests.unit.locate.test_sequences import by_onnxruntime
from tests.unit.onnxgraph.test_cut import recorded
from trueport.adapters.runtimes import runtime
from trueport.adapters.runtimes.observed import Observation
from trueport.adapters.runtimes.onnxruntime import OnnxRuntime
from trueport.locate.kernels import KernelJudgement, judge_kernels
from trueport.locate.sequences import Outcome, smallest_sequence
from trueport.onnxgraph.cut import Cutter

pytestmark = pytest.mark.shared


def case_of(name: str) -> tuple[onnx.ModelProto, dict[str, Any]]:
    assert FOLDER.is_dir(), f"expected the handed cases in {FOLDER}, found none"
    model, feeds = getattr(load("onnx_runtime"), name)()
    return model, feeds


def cases() -> list[str]:
    return list(load("onnx_runtime").CASES) if FOLDER.is_dir() else ["missing"]


def kernels(name: str, by: str, folder: Path) -> KernelJudgement:
    model, feeds = case_of(name)
    path = folder / "model.onnx"
    onnx.save(model, str(path))
    return judge_kernels(Observation(model, path, feeds, runtime(by)).steps())


@pytest.mark.parametrize(
    ("case", "operator"),
    [
        ("log_softmax_of_large_scores", "LogSoftmax"),
        ("log_sum_exp_of_minus_infinities", "ReduceLogSumExp"),
        ("local_response_norm_over_channels", "LRN"),
        ("half_layer_norm_of_large_values", "LayerNormalization"),
    ],
)
def test_wrong_kernels_of_the_reference_evaluator(case: str, operator: str, tmp_path: Path) -> None:
    assert [n.operator for n in kernels(case, "onnx-reference", tmp_path).introduced] == [operator]


@pytest.mark.parametrize("case", cases())
def test_no_kernel_of_onnxruntime_is_blamed(case: str, tmp_path: Path) -> None:
    """Its two faults are its optimizer's, and with optimizations off there are none."""
    found = kernels(case, "onnxruntime", tmp_path)
    assert found.judged > 0
    assert (found.nodes, found.unjudged) == ((), {})


def fails(case: str, folder: Path, off: frozenset[str]) -> bool:
    model, feeds = case_of(case)
    path = folder / "model.onnx"
    onnx.save(model, str(path))
    parts = OnnxRuntime().switches(path)
    try:
        (out,) = parts.run(off).run(feeds)
    except Exception:  # noqa: BLE001 - that it raises is what is asked
        return True
    (expected,) = getattr(load("onnx_runtime"), case).expected()
    return not np.allclose(out, expected)


def every() -> frozenset[str]:
    return frozenset(OnnxRuntime().switches(Path("none.onnx")).names)


def test_two_transformers_that_fail_only_together(tmp_path: Path) -> None:
    case, guilty = "cast_to_same_type_beside_division", frozenset({"CastElimination", "DivMulFusion"})
    assert fails(case, tmp_path, frozenset())
    assert not fails(case, tmp_path, every())
    assert fails(case, tmp_path, every() - guilty)
    for part in guilty:
        assert not fails(case, tmp_path, every() - {part})
        assert not fails(case, tmp_path, frozenset({part}))


def test_two_transformers_of_which_each_fails_alone(tmp_path: Path) -> None:
    """With the first one off the second one takes its place: only both off cure it."""
    case, guilty = "layer_norm_scale_wider_than_axis", frozenset({"LayerNormFusion", "SimplifiedLayerNormFusion"})
    assert fails(case, tmp_path, frozenset())
    assert not fails(case, tmp_path, guilty)
    for part in guilty:
        assert fails(case, tmp_path, frozenset({part}))
        assert fails(case, tmp_path, every() - {part})


@pytest.mark.parametrize(
    ("case", "on", "sequence"),
    [
        ("cast_to_same_type_beside_division", None, ("Cast", "Div", "Mul")),
        ("layer_norm_scale_wider_than_axis", None, ("Pow", "ReduceMean", "Add", "Sqrt", "Div", "Mul")),
        (
            "layer_norm_scale_wider_than_axis",
            "LayerNormFusion",
            ("ReduceMean", "Sub", "Pow", "ReduceMean", "Add", "Sqrt", "Div", "Mul", "Add"),
        ),
    ],
)
def test_the_sequence_that_is_wrong_together(
    case: str, on: str | None, sequence: tuple[str, ...], tmp_path: Path
) -> None:
    model, feeds = case_of(case)
    cutter = Cutter(model, recorded(model, feeds))
    removed = [node.output[0] for node in cutter.nodes]
    wrong = by_onnxruntime(tmp_path, None if on is None else frozenset({on}))
    found = smallest_sequence(cutter, removed, wrong)
    assert (found.outcome, found.operators) == (Outcome.SEQUENCE, sequence)
    assert found.barrier is True
