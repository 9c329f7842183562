"""The smallest set of parts that must be on."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trueport.locate.switches import smallest_on

NAMES = tuple(f"part{i}" for i in range(20))


def needs(*guilty: str):
    """Returns a failure that shows when all guilty parts are on."""
    return lambda off: not off & set(guilty)


@pytest.mark.parametrize("guilty", [("part0",), ("part19",), ("part3", "part4"), ("part1", "part9", "part18")])
def test_what_only_fails_together_is_found_together(guilty: tuple[str, ...]) -> None:
    found = smallest_on(NAMES, needs(*guilty))
    assert found.parts == guilty
    assert found.cures_alone == guilty
    assert found.complete


def test_a_failure_without_any_part_is_no_parts_fault() -> None:
    found = smallest_on(NAMES, lambda _: True)
    assert (found.without, found.parts, found.runs) == (True, (), 1)


def test_a_failure_that_looking_cures_is_said_to_be_cured() -> None:
    assert smallest_on(NAMES, lambda _: False).never


def test_either_of_two_parts_is_enough_and_none_cures_alone() -> None:
    found = smallest_on(NAMES, lambda off: not {"part2", "part7"} <= off)
    assert len(found.parts) == 1
    assert found.parts[0] in ("part2", "part7")
    assert found.cures_alone == ()


def test_a_run_that_cannot_be_made_shows_nothing() -> None:
    found = smallest_on(NAMES, lambda off: None if len(off) == 10 else "part5" not in off)
    assert found.parts == ("part5",)


def test_the_limit_of_runs_ends_the_search() -> None:
    found = smallest_on(NAMES, needs("part3", "part17"), limit=5)
    assert not found.complete
    assert found.runs <= 5
    assert {"part3", "part17"} <= set(found.parts)


@given(st.sets(st.sampled_from(NAMES), min_size=1, max_size=5))
def test_the_result_fails_and_is_minimal_and_the_same_again(guilty: set[str]) -> None:
    found = smallest_on(NAMES, needs(*guilty))
    assert set(found.parts) == guilty
    assert found == smallest_on(NAMES, needs(*guilty))
