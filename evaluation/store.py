"""Measurements as JSON lines, one file per task: what is there is not measured again.

A line is written whole and flushed to disk before the next measurement begins, so that a run that is killed loses one
measurement at most; the torn last line that it may leave is cut off when the file is opened.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

SCHEMA = "trueport.evaluation/1"


class Store:
    """The records of one task.

    Args:
        path: the file; its folder is made.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.records: list[dict[str, Any]] = []
        path.parent.mkdir(parents=True, exist_ok=True)
        self._read()

    def __contains__(self, key: str) -> bool:
        """Whether this measurement is there."""
        return any(record["key"] == key for record in self.records)

    def add(self, record: dict[str, Any]) -> None:
        """Appends one record and waits until it is on disk."""
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record, sort_keys=True, allow_nan=False) + "\n")
            file.flush()
            os.fsync(file.fileno())
        self.records.append(record)

    def _read(self) -> None:
        if not self._path.exists():
            return
        data = self._path.read_bytes()
        whole = data[: data.rfind(b"\n") + 1]
        if whole != data:
            with self._path.open("r+b") as file:
                file.truncate(len(whole))
        for line in whole.splitlines():
            record = json.loads(line)
            if record.get("schema") != SCHEMA:
                raise SystemExit(f"{self._path}: expected records of schema {SCHEMA}, got '{record.get('schema')}'")
            self.records.append(record)
