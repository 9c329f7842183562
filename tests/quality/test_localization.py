"""The node that a fault was planted at is the first that is named, and what only passes it on is not blamed."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import pytest

from tests.quality.localization.bench import Fault, Outcome
from tests.quality.localization.sample import BENCHES, Key, bench_of, keys, measure_key, pair
from trueport.core.taxonomy import Stage, Verdict

LEAST = 35
"""Faults that the sample must at least have."""
FIRST, AMONG_THREE = 0.95, 0.99


_NOT_REACHED = pytest.mark.xfail(
    strict=False,
    reason="the goal is not reached: of 38 faults 2 are late, both of torch-script's optimization (2026-12-01)",
)
_NOT_REACHED_IN_PAIRS = pytest.mark.xfail(
    strict=False, reason="of two faults in a traced graph the second is named by the operator before it (2026-12-01)"
)


@cache
def _measured() -> tuple[tuple[Key, Fault, Outcome], ...]:
    found = []
    for key in keys(per_stage=1):
        planted, outcome = measure_key(key)
        if outcome is not None:
            found.append((key, planted[0], outcome))
    return tuple(found)


def _told(rows: Sequence[tuple[Key, Fault, Outcome]]) -> str:
    return "\n".join(
        f"{key}: {fault.mutator} at {fault.operator} '{fault.node}' ({', '.join(sorted(fault.truth))}): "
        f"{outcome.verdict} {outcome.stage} {outcome.ranks} {outcome.nodes[:5]}"
        for key, fault, outcome in rows
    )


@pytest.mark.slow
@_NOT_REACHED
def test_the_right_node_comes_first() -> None:
    rows = _measured()
    assert len(rows) >= LEAST
    late = [r for r in rows if r[2].ranks != (1,)]
    assert len(late) <= (1 - FIRST) * len(rows), _told(late)


@pytest.mark.slow
@_NOT_REACHED
def test_the_right_node_is_among_the_first_three() -> None:
    rows = _measured()
    missed = [r for r in rows if not 1 <= r[2].ranks[0] <= 3]
    assert len(missed) <= (1 - AMONG_THREE) * len(rows), _told(missed)


@pytest.mark.slow
@_NOT_REACHED
def test_what_only_passes_an_error_on_is_not_blamed() -> None:
    rows = _measured()
    blamed = [r for r in rows if r[2].strangers]
    assert len(blamed) <= (1 - FIRST) * len(rows), _told(blamed)


@pytest.mark.slow
@pytest.mark.parametrize(("model", "converter"), BENCHES)
def test_a_model_without_a_planted_fault_is_right_and_nothing_is_blamed(model: str, converter: str) -> None:
    right = bench_of(model, converter).right
    assert right.verdict is Verdict.FAITHFUL
    assert not any("located" in f.evidence for f in right.findings)


@pytest.mark.slow
def test_each_fault_is_found_in_its_stage() -> None:
    wrong = [r for r in _measured() if (r[2].verdict, r[2].stage) != (Verdict.DIVERGENT, r[1].stage)]
    assert not wrong, _told(wrong)


@pytest.mark.slow
@pytest.mark.parametrize("converter", ["torch-dynamo", pytest.param("torch-script", marks=_NOT_REACHED_IN_PAIRS)])
def test_two_faults_in_one_model_are_both_found_and_a_right_model_has_none(converter: str) -> None:
    bench = bench_of("zoo:hf/distilbert", converter)
    assert bench.right.verdict is Verdict.FAITHFUL
    assert not any("located" in f.evidence for f in bench.right.findings)
    both = pair(bench, Stage.NODE_CONVERSION, 0)
    assert len(both) == 2
    outcome = bench.judge(both)
    assert outcome.first_of_place == (True, True), (both, outcome)
