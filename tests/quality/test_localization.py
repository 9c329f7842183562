"""The node that a fault was planted at is the first that is named, and what only passes it on is not blamed."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import pytest

from tests.quality.localization.bench import Fault, Outcome
from tests.quality.localization.sample import Key, bench_of, keys, measure_key, pair
from trueport.core.taxonomy import Stage, Verdict

LEAST = 35
"""Faults that the sample must at least have."""
FIRST, AMONG_THREE = 0.95, 0.99


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
def test_the_right_node_comes_first() -> None:
    rows = _measured()
    assert len(rows) >= LEAST
    late = [r for r in rows if r[2].ranks != (1,)]
    assert len(late) <= (1 - FIRST) * len(rows), _told(late)


@pytest.mark.slow
def test_the_right_node_is_among_the_first_three() -> None:
    rows = _measured()
    missed = [r for r in rows if not 1 <= r[2].ranks[0] <= 3]
    assert len(missed) <= (1 - AMONG_THREE) * len(rows), _told(missed)


@pytest.mark.slow
def test_what_only_passes_an_error_on_is_not_blamed() -> None:
    rows = _measured()
    blamed = [r for r in rows if r[2].strangers]
    assert len(blamed) <= (1 - FIRST) * len(rows), _told(blamed)


@pytest.mark.slow
def test_each_fault_is_found_in_its_stage() -> None:
    wrong = [r for r in _measured() if (r[2].verdict, r[2].stage) != (Verdict.DIVERGENT, r[1].stage)]
    assert not wrong, _told(wrong)


@pytest.mark.slow
@pytest.mark.parametrize("converter", ["torch-dynamo", "torch-script"])
def test_two_faults_in_one_model_are_both_found_and_a_right_model_has_none(converter: str) -> None:
    bench = bench_of("zoo:hf/distilbert", converter)
    assert bench.right.verdict is Verdict.FAITHFUL
    assert not any("located" in f.evidence for f in bench.right.findings)
    both = pair(bench, Stage.NODE_CONVERSION, 0)
    assert len(both) == 2
    outcome = bench.judge(both)
    assert outcome.first_of_place == (True, True), (both, outcome)
