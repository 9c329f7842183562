"""Evaluation tasks can be killed at any moment and go on where they were."""

from __future__ import annotations

import datetime
import json
from types import SimpleNamespace

import pytest
from evaluation import __main__ as program
from evaluation import registry
from evaluation.store import SCHEMA, Store


@pytest.fixture
def task(tmp_path, monkeypatch):
    made = SimpleNamespace(asked=[], written=[], fails_at=None)

    def measure(key):
        if key == made.fails_at:
            raise KeyboardInterrupt
        made.asked.append(key)
        return {"value": len(key)}

    module = SimpleNamespace(
        items=lambda: ["a", "bb", "ccc"], measure=measure, write_up=lambda records, folder: made.written.append(records)
    )
    monkeypatch.setattr(registry, "load", lambda name: module)
    monkeypatch.setattr(program, "RESULTS", tmp_path)
    made.run = lambda anew=False, day=1: program.run("task", anew=anew, today=datetime.date(2026, 12, day))
    return made


def test_a_stopped_task_goes_on_where_it_was(task, tmp_path):
    task.fails_at = "ccc"
    with pytest.raises(KeyboardInterrupt):
        task.run()
    task.fails_at = None
    task.run(day=2)
    assert task.asked == ["a", "bb", "ccc"]
    assert [path.name for path in (tmp_path / "task").iterdir()] == ["2026-12-01.jsonl"]
    assert [record["measured"]["value"] for record in task.written[-1]] == [1, 2, 3]


def test_anew_begins_a_file_of_today(task, tmp_path):
    task.run()
    task.run(anew=True, day=2)
    assert len(task.asked) == 6
    assert sorted(path.name for path in (tmp_path / "task").iterdir()) == ["2026-12-01.jsonl", "2026-12-02.jsonl"]


def test_a_torn_last_line_is_cut_off(tmp_path):
    path = tmp_path / "s.jsonl"
    store = Store(path)
    store.add({"schema": SCHEMA, "key": "a"})
    with path.open("a") as file:
        file.write('{"schema": "trueport.eva')
    again = Store(path)
    assert "a" in again
    again.add({"schema": SCHEMA, "key": "b"})
    assert [json.loads(line)["key"] for line in path.read_text().splitlines()] == ["a", "b"]


def test_numbers_that_json_lacks_and_foreign_files_are_refused(tmp_path):
    store = Store(tmp_path / "s.jsonl")
    with pytest.raises(ValueError, match="JSON compliant"):
        store.add({"schema": SCHEMA, "key": "a", "value": float("nan")})
    (tmp_path / "other.jsonl").write_text('{"key": "a"}\n')
    with pytest.raises(SystemExit, match="expected records"):
        Store(tmp_path / "other.jsonl")


def test_an_unknown_task_is_an_error():
    with pytest.raises(SystemExit, match="no task is called 'x'"):
        registry.load("x")
