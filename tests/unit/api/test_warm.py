"""A warm worker gives the same verdicts as fresh ones, and says where it would not."""

from __future__ import annotations

import importlib
import os
from dataclasses import replace

import msgspec
import pytest
import torch

import trueport
from tests.golden import check_results
from tests.unit.api import models
from trueport.core.errors import SourceError, UsageError
from trueport.core.taxonomy import Kind, Stage, Verdict
from trueport.isolation import Ending, Outcome

checking = importlib.import_module("trueport.api.check")  # the package has a function of this name
CRASHED = replace(check_results.crashed().checks[0], converter="torch-dynamo", runtime="onnxruntime")
FAITHFUL = check_results.faithful().checks[0]


class FakeWorkers:
    """Answers for workers: what the n-th request of a process gets depends on n alone."""

    def __init__(self, monkeypatch, *answers) -> None:
        self.answers = answers
        self.made: list[FakeWorker] = []
        monkeypatch.setattr(checking, "fresh_worker", self.make)
        monkeypatch.setattr("trueport.api.warm.fresh_worker", self.make)

    def make(self, threads):
        self.made.append(FakeWorker(self, threads))
        return self.made[-1]


class FakeWorker:
    def __init__(self, workers, threads) -> None:
        self.workers, self.threads, self.requests, self.pid, self.closed = workers, threads, [], None, False

    def run(self, target, payload, **rest):
        self.pid = 1
        self.requests.append(payload)
        answer = self.workers.answers[min(len(self.requests), len(self.workers.answers)) - 1]
        return Outcome(Ending.RESULT, value=msgspec.to_builtins(check_results.result(answer)))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.closed = True


def test_a_bad_verdict_of_a_used_worker_is_confirmed_in_a_fresh_one(monkeypatch):
    workers = FakeWorkers(monkeypatch, FAITHFUL, CRASHED)
    with trueport.Checker() as checker:
        first = checker.check_path("a.py")
        second = checker.check_path("b.py")
    assert first.checks[0] == FAITHFUL
    assert second.checks[0].verdict is Verdict.FAITHFUL
    finding = second.checks[0].findings[-1]
    assert finding.kind is Kind.STATE_DEPENDENT
    assert finding.evidence["warm_verdict"] is Verdict.CRASHED
    assert "this check was crashed in stage" in finding.message
    assert second.exit_code == 0
    assert [len(worker.requests) for worker in workers.made] == [2, 1]
    assert all(worker.closed for worker in workers.made)


def test_that_a_runtime_lacks_a_kernel_needs_no_confirmation(monkeypatch):
    finding = replace(CRASHED.findings[0], kind=Kind.NO_KERNEL)
    lacking = replace(CRASHED, stage=Stage.RUNTIME, findings=(finding,))
    workers = FakeWorkers(monkeypatch, FAITHFUL, lacking)
    with trueport.Checker() as checker:
        checker.check_path("a.py")
        assert checker.check_path("b.py").checks == (lacking,)
    assert [len(worker.requests) for worker in workers.made] == [2]


def test_forks_of_one_more_worker_confirm_where_modules_are_named(monkeypatch):
    workers = FakeWorkers(monkeypatch, FAITHFUL, CRASHED, CRASHED)
    with trueport.Checker(preload=["json"]) as checker:
        checker.check_path("a.py")
        checker.check_path("b.py")
        second = checker.check_path("c.py")
    assert second.checks[0].verdict is Verdict.CRASHED
    # The template answered first with FAITHFUL, then with what its process would have said the second time.
    assert [len(worker.requests) for worker in workers.made] == [3, 2]
    assert all(worker.closed for worker in workers.made)


def test_the_first_check_of_a_worker_needs_no_confirmation(monkeypatch):
    workers = FakeWorkers(monkeypatch, CRASHED)
    with trueport.Checker() as checker:
        assert checker.check_path("a.py").checks == (CRASHED,)
        assert len(workers.made) == 1
        # The second one is made again, agrees, and is returned as it is.
        assert checker.check_path("a.py").checks == (CRASHED,)
    assert len(workers.made) == 2


def test_other_threads_need_another_process(monkeypatch):
    workers = FakeWorkers(monkeypatch, FAITHFUL)
    with trueport.Checker(threads=2) as checker:
        checker.check_path("a.py")
        checker.check_path("a.py", threads=1)
    assert [worker.threads for worker in workers.made] == [2, 1]


def test_a_closed_checker_checks_nothing(monkeypatch):
    FakeWorkers(monkeypatch, FAITHFUL)
    checker = trueport.Checker()
    checker.close()
    with pytest.raises(RuntimeError, match="closed"):
        checker.check_path("a.py")


def test_a_checker_always_isolates():
    with pytest.raises(UsageError, match="always isolates"):
        trueport.Checker(isolate=False)


def threads_of_libraries(payload, blob, emit):
    return {name: os.environ.get(name) for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")}


def test_libraries_get_the_threads_of_the_options():
    with checking.fresh_worker(3) as worker:
        worker._allow = ("tests",)  # our own targets may be asked for what the package's never tell
        outcome = worker.run("tests.unit.api.test_warm:threads_of_libraries", {})
    assert outcome.value == dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "3")


def test_a_lost_source_says_where_it_was(tmp_path):
    (tmp_path / "dies.py").write_text("import ctypes\n\n\ndef model():\n    return ctypes.string_at(0)\n")
    with pytest.raises(SourceError, match=r"(?s)SIGSEGV; nothing was converted\n.*dies\.py\", line 5 in model"):
        trueport.check_path(str(tmp_path / "dies.py"))


@pytest.mark.slow
def test_what_torch_remembers_of_a_gru_is_found(no_leftovers):
    path = models.__file__
    settings = {"samples": 1, "timeout_s": 300.0}
    with trueport.Checker(**settings) as checker:
        first = checker.check_path(f"{path}:recurrent").checks[0]
        second = checker.check_path(f"{path}:another_recurrent").checks[0]
    fresh = trueport.check_path(f"{path}:another_recurrent", trueport.CheckOptions(**settings)).checks[0]
    assert first.verdict is fresh.verdict is second.verdict is Verdict.CRASHED
    # Alone it is right until the optimizer; after another GRU it is already captured or translated otherwise.
    assert first.stage is fresh.stage is second.stage is Stage.OPTIMIZATION
    assert [f.kind for f in second.findings].count(Kind.STATE_DEPENDENT) == 1
    assert Kind.STATE_DEPENDENT not in {f.kind for f in (*first.findings, *fresh.findings)}


@pytest.mark.slow
def test_modules_in_memory_are_checked_by_the_warm_worker(no_leftovers):
    with trueport.Checker(samples=1) as checker:
        model, args = models.floor()
        wrong = checker.check(model, args, converters="torch-script")
        right = checker.check(torch.nn.ReLU(), (torch.ones(2),), converters="torch-script")
    assert wrong.checks[0].verdict is Verdict.DIVERGENT
    assert right.exit_code == 0
