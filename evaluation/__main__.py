"""`python -m evaluation [TASK ...]`: runs tasks one after the other and skips what is measured already.

Records lie in docs/results/<task>/<day of the first record>.jsonl; `--anew` begins a new file for today.
"""

from __future__ import annotations

import argparse
import datetime
import os
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from evaluation import registry
from evaluation.packaged import VARIABLE as CACHE
from evaluation.store import SCHEMA, Store
from trueport.core.versions import base_versions, package_versions

RESULTS = Path(__file__).parents[1] / "docs" / "results"
_PACKAGES = ("torch", "onnx", "onnxscript", "onnx-ir", "onnxruntime", "transformers", "tensorflow", "keras", "tf2onnx")


def run(name: str, *, anew: bool, today: datetime.date) -> None:
    """Measures what is missing of a task and writes it up."""
    task = registry.load(name)
    folder = RESULTS / name
    found = sorted(folder.glob("*.jsonl"))
    path = folder / f"{today.isoformat()}.jsonl" if anew or not found else found[-1]
    store = Store(path)
    versions = {**base_versions(), **package_versions(*_PACKAGES)}
    missing = [key for key in task.items() if key not in store]
    for key, measured, elapsed_s in _measured(task, missing, jobs=getattr(task, "JOBS", 1)):
        store.add({
            "schema": SCHEMA, "task": name, "key": key, "day": today.isoformat(), "elapsed_s": elapsed_s,
            "versions": versions, "measured": measured,
        })  # fmt: skip
        print(f"{name}: {key} ({elapsed_s:.1f} s)", flush=True)
    registry.write_up(task, store.records, folder)


def _measured(task: registry.Task, keys: Sequence[str], *, jobs: int) -> Iterator[tuple[str, dict[str, Any], float]]:
    """Yields (key, measurement, seconds) as they come; stored by one thread, in whatever order."""

    def one(key: str) -> tuple[str, dict[str, Any], float]:
        started = time.perf_counter()
        return key, task.measure(key), time.perf_counter() - started

    if jobs == 1:
        yield from map(one, keys)
        return
    with ThreadPoolExecutor(jobs) as pool:
        try:
            for future in as_completed([pool.submit(one, key) for key in keys]):
                yield future.result()
        finally:
            pool.shutdown(cancel_futures=True)  # after an error nothing would be stored any more


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the tasks named, or all."""
    parser = argparse.ArgumentParser(prog="python -m evaluation", description=__doc__)
    parser.add_argument("tasks", nargs="*", metavar="TASK", help=f"some of: {', '.join(registry.TASKS) or 'none yet'}")
    parser.add_argument("--anew", action="store_true", help="measure everything again, into a file of today")
    parser.add_argument("--cache", metavar="FOLDER", help="where models out of packages are kept")
    chosen = parser.parse_args(arguments)
    if chosen.cache:
        os.environ[CACHE] = chosen.cache
    for name in chosen.tasks or registry.TASKS:
        run(name, anew=chosen.anew, today=datetime.datetime.now(tz=datetime.UTC).date())
    return 0


if __name__ == "__main__":
    sys.exit(main())
