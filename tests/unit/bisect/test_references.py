"""The source on every input set: what it refuses is dropped and counted, its example must work."""

from __future__ import annotations

import numpy as np
import pytest

from tests.unit.bisect.fakes import AWAY, EDGE, EXAMPLE, FakeSource
from trueport.bisect.references import (
    FUTILE,
    MOST_EXTRA,
    References,
    collect,
    comparable_share,
    draw_until_comparable,
)
from trueport.core.errors import SourceError
from trueport.inputs.draw import InputSet
from trueport.oracle.noise import ALARM, SCREEN


def _collect(source, sets=(EXAMPLE, AWAY, EDGE)):
    return collect(source, list(sets), lambda _: None)


def _again(number):
    return InputSet(f"drawn again {number}", "redrawn", (np.full(1, float(number)),))


def test_every_accepted_set_has_its_reference():
    told = _collect(FakeSource())
    assert [i.label for i in told.inputs] == ["example", "redrawn 1", "zeros"]
    assert len(told.screens) == 3
    assert told.refused == []


def test_refused_sets_are_dropped_and_counted():
    told = _collect(FakeSource(refuses=("redrawn 1",)))
    assert [i.label for i in told.inputs] == ["example", "zeros"]
    assert [(r.label, r.reason) for r in told.refused] == [("redrawn 1", "ValueError: no redrawn 1 please")]


def test_a_source_that_refuses_its_example_is_an_error():
    with pytest.raises(SourceError, match=r"own example: ValueError: no example please") as caught:
        _collect(FakeSource(refuses=("example",)))
    assert isinstance(caught.value.__cause__, ValueError)


def test_progress_hears_of_every_set():
    heard = []
    collect(FakeSource(refuses=("redrawn 1",)), [EXAMPLE, AWAY], heard.append)
    assert heard == ["example", "redrawn 1"]


@pytest.mark.parametrize(
    ("second", "same"),
    [
        (None, True),
        ((np.array([0.0, 1.0, 2.5], np.float32),), False),
        ((np.arange(3.0),), False),
        ((np.arange(3.0, dtype=np.float32)[None],), False),
        ((), False),
        ((np.arange(3.0, dtype=np.float32),) * 2, False),
    ],
    ids=["the same", "value", "type", "shape", "none", "two"],
)
def test_two_runs_that_differ_make_a_source_nondeterministic(second, same):
    assert _collect(FakeSource(second=second)).deterministic is same


def test_nan_in_both_runs_is_the_same():
    assert _collect(FakeSource(value=lambda _: np.array([np.nan, 1.0]))).deterministic


def test_many_draws_are_made_once():
    source = FakeSource()
    told = _collect(source)
    assert told.draws == SCREEN.arithmetic
    assert told.best(1) is told.screens[1]
    confirmed = told.confirmed(1)
    assert told.confirmed(1) is confirmed
    assert told.best(1) is confirmed
    assert told.best(0) is told.screens[0]
    assert told.draws == ALARM.arithmetic
    assert [total for _, _, total in source.asked].count(ALARM.total) == 1


# ---------------------------------------------------------------------- comparable


def _taint(share_by_label):
    def unstable(inputs):
        count = share_by_label.get(inputs.label, share_by_label.get("else", 0))
        return np.arange(10) < count

    return FakeSource(value=lambda _: np.arange(10.0), unstable=unstable)


def test_share_counts_elements_over_all_sets():
    assert comparable_share(_collect(_taint({"example": 5}))) == 0.75
    assert comparable_share(_collect(_taint({}))) == 1.0


def test_edge_regimes_do_not_count_for_the_share():
    assert comparable_share(_collect(_taint({"zeros": 10}))) == 1.0


def test_nothing_at_all_is_comparable_throughout():
    assert comparable_share(References(FakeSource())) == 1.0


def test_enough_is_left_alone():
    told = _collect(_taint({"zeros": 10}))
    draw_until_comparable(told, _again, needed=0.95)
    assert len(told.inputs) == 3


def test_more_is_drawn_until_enough_can_be_compared():
    told = _collect(_taint({"example": 4}))
    draw_until_comparable(told, _again, needed=0.95)
    assert comparable_share(told) >= 0.95
    assert len(told.inputs) == len(told.screens) < 3 + MOST_EXTRA
    assert told.inputs[3].label == "drawn again 1"


def test_drawing_ends_where_nothing_helps():
    told = _collect(_taint({"else": 5}))
    draw_until_comparable(told, _again, needed=0.95)
    assert len(told.inputs) == 3 + FUTILE


def test_drawing_ends_where_it_helps_too_little():
    told = _collect(_taint({"example": 10, "redrawn 1": 10, "else": 1}))
    draw_until_comparable(told, _again, needed=0.95)
    assert len(told.inputs) == 3 + MOST_EXTRA


def test_further_sets_that_the_source_refuses_are_dropped_and_counted():
    source = _taint({"example": 4})
    source.refuses = ("drawn again 1", "drawn again 3")
    told = _collect(source)
    draw_until_comparable(told, _again, needed=0.95)
    assert len(told.inputs) == len(told.screens)
    assert not {"drawn again 1", "drawn again 3"} & {i.label for i in told.inputs}
    assert [r.label for r in told.refused] == ["drawn again 1", "drawn again 3"]
