"""Arrays, references and results, drawn small."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from trueport.core.result import (
    Check,
    CheckResult,
    Elements,
    Finding,
    Floor,
    InputInfo,
    NodeRef,
    StageRecord,
    SubjectInfo,
    exit_code,
)  # fmt: skip
from trueport.core.taxonomy import Cause, Kind, Lane, Role, Stage, Status, Symptom, Verdict
from trueport.oracle.compare import ReferenceOutput

LAW = settings(
    max_examples=40,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)

FLOATS = ("float32", "float16", "float64")
EXACT = ("int64", "int32", "uint8", "bool")
SHAPES = npst.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)
FILLED = npst.array_shapes(min_dims=0, max_dims=3, min_side=1, max_side=4)


def arrays(dtypes: tuple[str, ...], shapes: Any = SHAPES) -> Any:
    """Arrays of these types, with NaN and infinity where the type has them."""
    return st.sampled_from(dtypes).flatmap(lambda name: npst.arrays(np.dtype(name), shapes))


def finite_arrays(shapes: Any = SHAPES, bound: float = 1e6) -> Any:
    """float64 arrays of ordinary numbers, many of them equal, some zero."""
    numbers = st.one_of(st.floats(-bound, bound), st.sampled_from([0.0, -0.0, 1.0, 1.5, -2.0, 1e-3]))
    return npst.arrays(np.float64, shapes, elements=numbers)


def reference_of(value: np.ndarray, *, dtype: str | None = None, relative: float = 1e-6) -> ReferenceOutput:
    """A right output whose floors are a share of its magnitude."""
    name = dtype or value.dtype.name
    wide = value.astype(np.float64) if value.dtype.kind == "f" else value
    size = np.zeros(value.shape)
    if value.dtype.kind == "f":
        size = np.where(np.isfinite(wide), np.abs(wide), 0.0)
    taint = np.zeros(value.shape, bool)
    return ReferenceOutput("y", name, wide, size * relative * 2.0**-20, size * relative, taint, 4)


# ---------------------------------------------------------------------- results

TEXT = st.text(max_size=12)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
COUNTS = st.integers(0, 2**53)
PLAIN: Any = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | NUMBERS | TEXT,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXT, inner, max_size=2),
    max_leaves=4,
)
MAPS = st.dictionaries(TEXT, PLAIN, max_size=2)


def tuples(inner: Any, most: int = 2) -> Any:
    """Short tuples."""
    return st.lists(inner, max_size=most).map(tuple)


NODES = st.builds(NodeRef, TEXT, TEXT, TEXT, TEXT, st.sampled_from(Role), st.none() | NUMBERS)
FINDINGS = st.builds(
    Finding, TEXT, st.sampled_from(Kind), st.booleans(), st.none() | st.sampled_from(Symptom),
    st.none() | st.sampled_from(Stage), st.none() | st.sampled_from(Cause), TEXT, tuples(NODES), TEXT, MAPS,
)  # fmt: skip
RECORDS = st.builds(
    StageRecord,
    st.sampled_from(Stage),
    TEXT,
    st.sampled_from(Status),
    st.sampled_from(Lane),
    st.none() | NUMBERS,
    NUMBERS,
)
INPUTS = st.builds(InputInfo, TEXT, TEXT, tuples(st.integers(0, 10)))
SUBJECTS = st.builds(SubjectInfo, TEXT, TEXT, TEXT, TEXT, st.none() | st.booleans(), tuples(INPUTS))
CHECKS = st.builds(
    Check, converter=st.none() | TEXT, runtime=TEXT, options=MAPS, verdict=st.sampled_from(Verdict),
    symptom=st.none() | st.sampled_from(Symptom), stage=st.none() | st.sampled_from(Stage),
    cause=st.none() | st.sampled_from(Cause), score=st.none() | NUMBERS, floor=st.builds(Floor, TEXT, COUNTS, NUMBERS),
    resolution=st.none() | NUMBERS, inputs_tried=COUNTS, elements=st.builds(Elements, COUNTS, COUNTS, COUNTS),
    stages=tuples(RECORDS), findings=tuples(FINDINGS), explanation=TEXT, elapsed_s=NUMBERS,
    peak_memory_mb=st.none() | NUMBERS, versions=st.dictionaries(TEXT, TEXT, max_size=2), seed=COUNTS, repeat=TEXT,
)  # fmt: skip


def _result(subject: SubjectInfo, checks: tuple[Check, ...]) -> CheckResult:
    return CheckResult(subject, checks, exit_code([c.verdict for c in checks]))


RESULTS = st.builds(_result, SUBJECTS, tuples(CHECKS))
