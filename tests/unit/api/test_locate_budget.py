"""A search takes no more memory than the limit of the process leaves."""

from __future__ import annotations

from trueport.api.locate.budget import LEAST_BYTES, LIMIT_BYTES, budget_bytes

MIB = 2**20


def test_a_third_of_what_is_left() -> None:
    assert budget_bytes(8192, held_bytes=7592 * MIB) == 200 * MIB


def test_never_more_than_the_limit_of_the_search() -> None:
    assert budget_bytes(1_000_000, held_bytes=0) == LIMIT_BYTES
    assert budget_bytes(None) == LIMIT_BYTES


def test_a_little_where_nothing_is_left() -> None:
    assert budget_bytes(100, held_bytes=500 * MIB) == LEAST_BYTES


def test_what_the_process_holds_counts() -> None:
    assert budget_bytes(400) < 400 * MIB / 3
