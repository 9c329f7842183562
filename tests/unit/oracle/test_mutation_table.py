"""The comparator's mutation table: a wrong result must never look like a right one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.oracle.mutations import CONTROLS, LEVELS, MUTATIONS, Row, detected, judged, table
from trueport.core.taxonomy import Status

ROOT = Path(__file__).parents[3]


def _name(row: Row) -> str:
    return row.name


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("row", MUTATIONS, ids=_name)
def test_every_mutation_is_detected(row, level):
    assert detected(row, level) is (level not in row.hidden_from)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("row", CONTROLS, ids=_name)
def test_controls_are_not_detected(row, level):
    assert detected(row, level) is (level in row.hidden_from)


def test_table_is_large_and_its_names_are_unique():
    names = [row.name for row in (*MUTATIONS, *CONTROLS)]
    assert len(MUTATIONS) >= 40
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("row", MUTATIONS, ids=_name)
def test_every_mutation_is_seen_by_both_judges(row):
    assert not row.hidden_from & {"judge_meaning", "judge_arithmetic"}
    for level in ("judge_meaning", "judge_arithmetic"):
        first, second = judged(row, level).trials
        assert not first.bad
        assert second.bad


def test_a_run_that_raises_is_a_crash():
    row = next(r for r in MUTATIONS if r.raises)
    assert judged(row, "judge_meaning").status is judged(row, "judge_arithmetic").status is Status.CRASHED


def test_the_same_under_four_hash_seeds():
    command = [sys.executable, "-m", "tests.unit.oracle.mutations"]
    runs = [
        subprocess.Popen(command, cwd=ROOT, env={**os.environ, "PYTHONHASHSEED": str(seed)}, stdout=subprocess.PIPE)
        for seed in range(4)
    ]
    told = [run.communicate()[0] for run in runs]
    assert [run.returncode for run in runs] == [0] * 4
    assert len(set(told)) == 1
    assert json.loads(told[0]) == table()
