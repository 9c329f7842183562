from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from trueport.isolation import Worker


@pytest.fixture
def worker(no_leftovers: Path) -> Iterator[Worker]:
    with Worker(allow=("tests",)) as worker:
        yield worker


@pytest.fixture
def run(worker: Worker):
    def call(name: str, payload: dict | None = None, **limits):
        return worker.run(f"tests.unit.isolation.targets:{name}", payload or {}, **limits)

    return call
