"""Small searches whose answers are known beforehand."""

from __future__ import annotations

import pytest

from trueport.locate.switches import OnSet, smallest_on

NAMES = tuple("abcdefgh")


def needs(*parts):
    """Fails where all of `parts` are on."""
    return lambda off: not set(parts) & off


def test_one_part():
    found = smallest_on(NAMES, needs("e"))
    assert (found.on, found.cures_alone, found.minimal) == (("e",), (True,), True)
    assert not (found.without or found.never or found.unusable)


def test_two_parts_that_interact():
    found = smallest_on(NAMES, needs("b", "g"))
    assert found.on == ("b", "g")
    assert found.cures_alone == (True, True)


def test_of_two_parts_that_do_the_same_harm_neither_cures_alone():
    found = smallest_on(NAMES, lambda off: not {"b", "g"} <= off)
    assert found.on == ("b",)
    assert found.cures_alone == (False,)


def test_no_parts_fault():
    found = smallest_on(NAMES, lambda off: True)
    assert found == OnSet(without=True, minimal=True, runs=2)


def test_the_instrumented_run_cures():
    assert smallest_on(NAMES, lambda off: False) == OnSet(never=True, runs=1)


def test_what_cannot_be_run_at_all_is_not_called_cured():
    assert smallest_on(NAMES, lambda off: None) == OnSet(unusable=True, runs=1, unknown=1)


def test_an_unknown_answer_is_no_failure_and_is_counted():
    found = smallest_on(("a", "b"), lambda off: True if not off else None)
    assert found.on == ("a", "b")
    assert found.cures_alone == (None, None)
    assert found.unknown == found.runs - 1 > 0


def test_no_names():
    assert smallest_on((), lambda off: True).without
    assert smallest_on((), lambda off: False).never


def test_a_name_that_stands_twice_counts_once():
    found = smallest_on(("a", "a", "b"), needs("a"))
    assert (found.on, found.cures_alone) == (("a",), (True,))


def test_the_limit_ends_with_the_best_so_far_and_says_so():
    found = smallest_on(NAMES, needs("h"), limit=4)
    assert found.runs == 4
    assert not found.minimal
    assert "h" in found.on and len(found.on) < len(NAMES)
    assert found.cures_alone == (None,) * len(found.on)


def test_a_limit_below_one_is_refused():
    with pytest.raises(ValueError, match="at least 1"):
        smallest_on(NAMES, needs("a"), limit=0)


def test_an_exception_of_the_run_is_not_swallowed():
    with pytest.raises(RuntimeError, match="broken"):
        smallest_on(NAMES, lambda off: (_ for _ in ()).throw(RuntimeError("broken")))


def test_one_of_a_hundred_takes_few_runs():
    assert smallest_on([f"p{i}" for i in range(100)], needs("p77")).runs <= 20
