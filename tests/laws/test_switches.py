"""What is found fails, loses its failure with any part less, and is the same each time, within the limit of runs."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.laws.strategies import LAW
from trueport.locate.switches import smallest_on

NAMES = tuple(f"p{i}" for i in range(14))
CAUSES = st.lists(st.frozensets(st.sampled_from(NAMES), min_size=0, max_size=4), max_size=4)
"""Sets of parts, each of which fails where all its parts are on."""
CURES = st.frozensets(st.sampled_from(NAMES), max_size=2)
"""Where the first part is off and not all of these are, there is no failure; that makes it not monotone."""


def predicate(causes, cures, seen=None):
    """A failure that need not be monotone and sometimes cannot be run."""

    def fails(off):
        if seen is not None:
            seen.append(off)
        if cures and NAMES[0] in off and not cures <= off:
            return None if len(off) % 3 == 0 else False
        return any(not cause & off for cause in causes)

    return fails


@LAW
@given(CAUSES, CURES)
def test_the_result_fails_and_no_part_of_it_can_be_left_out(causes, cures):
    fails = predicate(causes, cures)
    found = smallest_on(NAMES, fails, limit=10_000)
    everything = frozenset(NAMES)
    if found.never:
        assert fails(frozenset()) is False
        return
    assert found.minimal
    assert fails(everything - frozenset(found.on)) is True
    assert found.without == (not found.on)
    for part in found.on:
        assert fails(everything - (frozenset(found.on) - {part})) is not True
    alone = [fails(frozenset({part})) for part in found.on]
    assert found.cures_alone == tuple(None if a is None else not a for a in alone)


@LAW
@given(CAUSES, CURES, st.integers(1, 30))
def test_the_limit_holds_nothing_is_run_twice_and_the_best_still_fails(causes, cures, limit):
    seen = []
    found = smallest_on(NAMES, predicate(causes, cures, seen), limit=limit)
    assert found.runs == len(seen) == len(set(seen)) <= limit
    if not found.never:
        assert predicate(causes, cures)(frozenset(NAMES) - frozenset(found.on)) is True


@LAW
@given(CAUSES, CURES, st.integers(1, 60))
def test_the_same_each_time(causes, cures, limit):
    fails = predicate(causes, cures)
    assert smallest_on(NAMES, fails, limit=limit) == smallest_on(NAMES, fails, limit=limit)


@LAW
@given(st.frozensets(st.sampled_from(NAMES), min_size=1, max_size=5))
def test_the_one_cause_is_found_whole(cause):
    found = smallest_on(NAMES, predicate([cause], frozenset()), limit=10_000)
    assert frozenset(found.on) == cause
    assert all(found.cures_alone)
