"""Advice is given where it is certain, and nowhere else."""

from __future__ import annotations

from trueport.cause import Circumstances, Evidence, advice, guess
from trueport.core.taxonomy import Kind, Stage, Verdict

DIVERGENT, CRASHED = Verdict.DIVERGENT, Verdict.CRASHED


def advised(evidence: Evidence, circumstances: Circumstances | None = None) -> str:
    return advice(evidence, guess(evidence), circumstances or Circumstances())


def test_without_gradients_comes_first() -> None:
    evidence = Evidence(CRASHED, Stage.NODE_CONVERSION, Kind.EXCEPTION, ("RuntimeError",))
    assert "no_grad" in advised(evidence, Circumstances(without_gradients=True))


def test_a_size_that_is_baked_in_names_the_argument_and_the_axis() -> None:
    evidence = Evidence(CRASHED, Stage.NODE_CONVERSION, Kind.EXCEPTION, ("ToolError",), True, True)
    told = advised(evidence, Circumstances("torch-script", axes=("axis 1 of 'x'",)))
    assert "dynamic_axes" in told
    assert "axis 1 of 'x'" in told
    assert "dynamic_shapes" in advised(evidence, Circumstances("torch-dynamo", axes=("axis 1 of 'x'",)))
    assert advised(evidence, Circumstances("tf2onnx", axes=("axis 1 of 'x'",))) == ""


def test_an_axis_that_was_not_granted_is_said() -> None:
    evidence = Evidence(DIVERGENT, Stage.LOAD_MODEL, Kind.VALUE, (), True, True)
    assert "fixed at 2" in advised(evidence, Circumstances(frozen_axis="axis 0 of input 'x' is fixed at 2"))


def test_the_part_that_was_found_is_the_one_to_switch_off() -> None:
    runtime = Evidence(DIVERGENT, Stage.RUNTIME, Kind.VALUE, optimized="at level extended")
    assert "disabled_optimizers=['GeluFusion']" in advised(runtime, Circumstances(parts=("GeluFusion",)))
    optimizer = Evidence(DIVERGENT, Stage.OPTIMIZATION, Kind.VALUE)
    assert advised(
        optimizer, Circumstances("onnxoptimizer", ("fuse_pad_into_pool",), ("fuse_pad_into_pool",))
    ).endswith("switch off fuse_pad_into_pool")


def test_an_operator_without_translation_is_named() -> None:
    evidence = Evidence(
        CRASHED, Stage.NODE_CONVERSION, Kind.EXCEPTION, ("DispatchError",), operators=("aten.amax.default",)
    )
    assert "aten.amax.default" in advised(evidence)


def test_nothing_is_advised_on_a_guess() -> None:
    assert advised(Evidence(DIVERGENT, None, Kind.VALUE)) == ""
    assert advised(Evidence(DIVERGENT, Stage.RUNTIME, Kind.VALUE)) == ""
