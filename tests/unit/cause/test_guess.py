"""Every rule fires on its evidence, the surer one first, and thin evidence is `other`."""

from __future__ import annotations

import itertools

import pytest

from trueport.cause import Confidence, Evidence, Guess, Located, guess
from trueport.core.taxonomy import Cause, Kind, Stage, Verdict

DIVERGENT, CRASHED = Verdict.DIVERGENT, Verdict.CRASHED

CASES = [
    (
        Evidence(CRASHED, Stage.EXPORT, Kind.EXCEPTION, misused="the model is exported in training mode"),
        Cause.API_MISUSE,
    ),
    (
        Evidence(
            DIVERGENT, Stage.LOAD_MODEL, Kind.VALUE, only_away=True, misused="the model is exported in training mode"
        ),
        Cause.API_MISUSE,
    ),
    (Evidence(CRASHED, Stage.RUNTIME, Kind.NO_KERNEL, no_kernel=True), Cause.INCOMPATIBILITY_EXTERNAL),
    (
        Evidence(CRASHED, Stage.NODE_CONVERSION, Kind.EXCEPTION, ("ConversionError", "DispatchError")),
        Cause.INCOMPATIBILITY_EXTERNAL,
    ),
    (
        Evidence(CRASHED, Stage.NODE_CONVERSION, Kind.EXCEPTION, ("UnsupportedOperatorError",)),
        Cause.INCOMPATIBILITY_EXTERNAL,
    ),
    (
        Evidence(CRASHED, Stage.LOAD_MODEL, Kind.EXCEPTION, ("TorchExportError", "GuardOnDataDependentSymNode")),
        Cause.ALGORITHM_TRACING,
    ),
    (Evidence(DIVERGENT, Stage.LOAD_MODEL, Kind.VALUE, only_away=True), Cause.ALGORITHM_TRACING),
    (Evidence(DIVERGENT, Stage.LOAD_MODEL, Kind.SHAPE, only_away=True), Cause.ALGORITHM_TRACING),
    (
        Evidence(DIVERGENT, Stage.NODE_CONVERSION, Kind.SHAPE, only_away=True, only_sizes=True),
        Cause.ALGORITHM_TRACING,
    ),
    (Evidence(DIVERGENT, Stage.NODE_CONVERSION, Kind.DTYPE), Cause.TYPE_TENSOR),
    (Evidence(DIVERGENT, Stage.EXPORT, Kind.DECLARED_TYPE), Cause.TYPE_TENSOR),
    (Evidence(CRASHED, Stage.NODE_CONVERSION, Kind.EXCEPTION, ("TypeError",)), Cause.TYPE_CONVENTIONAL),
    (Evidence(CRASHED, Stage.OPTIMIZATION, Kind.EXCEPTION, ("AttributeError",)), Cause.TYPE_CONVENTIONAL),
    (Evidence(DIVERGENT, Stage.NODE_CONVERSION, Kind.SHAPE), Cause.SHAPE),
    (Evidence(DIVERGENT, Stage.RUNTIME, Kind.RANK), Cause.SHAPE),
    (Evidence(DIVERGENT, Stage.EXPORT, Kind.OUTPUT_COUNT), Cause.SHAPE),
    (Evidence(CRASHED, Stage.NODE_CONVERSION, Kind.EXCEPTION, ("IndexError",)), Cause.SHAPE),
    (Evidence(CRASHED, Stage.NODE_CONVERSION, Kind.EXCEPTION, ("ValueError",)), Cause.INCOMPATIBILITY_EXTERNAL),
    (Evidence(DIVERGENT, Stage.OPTIMIZATION, Kind.VALUE), Cause.ALGORITHM_OPTIMIZATION),
    (Evidence(DIVERGENT, Stage.NODE_CONVERSION, Kind.VALUE), Cause.ALGORITHM_LOGIC),
    (Evidence(DIVERGENT, Stage.LOAD_MODEL, Kind.NONFINITE), Cause.ALGORITHM_LOGIC),
    (Evidence(DIVERGENT, Stage.RUNTIME, Kind.VALUE), Cause.ALGORITHM_LOGIC),
    (Evidence(DIVERGENT, Stage.RUNTIME, Kind.VALUE, optimized="at level basic"), Cause.ALGORITHM_OPTIMIZATION),
    (Evidence(CRASHED, Stage.RUNTIME, Kind.EXCEPTION, optimized="at level all"), Cause.ALGORITHM_OPTIMIZATION),
    (Evidence(CRASHED, Stage.RUNTIME, Kind.EXCEPTION, ("RuntimeError",)), Cause.OTHER),
    (Evidence(DIVERGENT, None, Kind.VALUE), Cause.OTHER),
    (Evidence(CRASHED, Stage.OPTIMIZATION, Kind.EXCEPTION, ("KeyError",)), Cause.ALGORITHM_OPTIMIZATION),
    (Evidence(CRASHED, Stage.RUNTIME, Kind.EXCEPTION, ("InvalidArgument",), running=True), Cause.SHAPE),
    (
        Evidence(CRASHED, Stage.RUNTIME, Kind.EXCEPTION, ("InvalidArgument",), optimized="at level basic"),
        Cause.ALGORITHM_OPTIMIZATION,
    ),
    (
        Evidence(CRASHED, Stage.RUNTIME, Kind.EXCEPTION, ("InvalidArgument",), True, True, running=True),
        Cause.ALGORITHM_TRACING,
    ),
    (Evidence(CRASHED, Stage.VALIDATION, Kind.VALIDATION, foreign=("TruncateMod",)), Cause.INCOMPATIBILITY_EXTERNAL),
    (Evidence(DIVERGENT, Stage.OPTIMIZATION, Kind.VALUE, opsets=(10, 18)), Cause.INCOMPATIBILITY_INTERNAL),
    (
        Evidence(CRASHED, Stage.NODE_CONVERSION, Kind.EXCEPTION, ("RuntimeError",), operators=("onnx::Reshape",)),
        Cause.SHAPE,
    ),
    (
        Evidence(CRASHED, Stage.NODE_CONVERSION, Kind.EXCEPTION, ("RuntimeError",), operators=("aten::amax",)),
        Cause.INCOMPATIBILITY_EXTERNAL,
    ),
    (Evidence(CRASHED, Stage.LOAD_MODEL, Kind.EXCEPTION, ("ValueError",), dynamic=True), Cause.ALGORITHM_TRACING),
    (Evidence(CRASHED, Stage.LOAD_MODEL, Kind.EXCEPTION, ("ValueError",)), Cause.OTHER),
    (Evidence(DIVERGENT, Stage.EXPORT, Kind.INPUT_MISSING), Cause.API_MISUSE),
    (
        Evidence(
            DIVERGENT, Stage.NOT_DISTINGUISHABLE, Kind.VALUE, located=Located(("Div",), differs=Kind.VALUE, alone=True)
        ),
        Cause.ALGORITHM_LOGIC,
    ),
    (Evidence(DIVERGENT, Stage.NOT_DISTINGUISHABLE, Kind.VALUE, located=Located(("Div",))), Cause.OTHER),
    (
        Evidence(
            DIVERGENT, Stage.NODE_CONVERSION, Kind.VALUE, located=Located(("Sum",), differs=Kind.SHAPE, alone=True)
        ),
        Cause.SHAPE,
    ),
    (
        Evidence(
            DIVERGENT, Stage.NODE_CONVERSION, Kind.VALUE, located=Located(("Eq",), differs=Kind.DTYPE, alone=True)
        ),
        Cause.TYPE_TENSOR,
    ),
]


@pytest.mark.parametrize(("evidence", "cause"), CASES)
def test_cause(evidence, cause):
    assert guess(evidence).cause is cause


def test_every_guess_says_what_it_rests_on():
    assert all(guess(evidence).because for evidence, _ in CASES)


def test_a_translation_that_is_missing_is_named():
    told = guess(Evidence(CRASHED, Stage.NODE_CONVERSION, Kind.EXCEPTION, ("Outer", "DispatchError")))
    assert "DispatchError" in told.because


def test_only_other_sizes_point_to_tracing_wherever_it_shows():
    for stage in (Stage.NODE_CONVERSION, Stage.OPTIMIZATION, Stage.EXPORT, Stage.RUNTIME):
        assert guess(Evidence(DIVERGENT, stage, Kind.VALUE, (), True, True)).cause is Cause.ALGORITHM_TRACING


def test_there_is_a_guess_for_all_evidence():
    for verdict, stage, kind, away, sizes in itertools.product(Verdict, (*Stage, None), Kind, *[(False, True)] * 2):
        told = guess(Evidence(verdict, stage, kind, (), away, sizes))
        assert isinstance(told, Guess)
        assert told.cause in Cause


def test_the_place_makes_a_cause_surer():
    thin = Evidence(DIVERGENT, Stage.NODE_CONVERSION, Kind.VALUE)
    located = Evidence(
        DIVERGENT, Stage.NODE_CONVERSION, Kind.VALUE, located=Located(("Div",), differs=Kind.VALUE, alone=True)
    )
    assert guess(thin).confidence is Confidence.MEDIUM
    assert guess(located).confidence is Confidence.HIGH


def test_what_fits_no_rule_is_a_guess():
    assert guess(Evidence(DIVERGENT, None, Kind.VALUE)).confidence is Confidence.LOW


def test_only_a_refusal_on_running_is_about_shapes():
    loading = Evidence(CRASHED, Stage.RUNTIME, Kind.EXCEPTION, ("InvalidArgument",))
    assert guess(loading).cause is Cause.OTHER
