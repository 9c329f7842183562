"""A worker between requests: events, output, warmth, and what must be gone afterwards."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import cloudpickle
import psutil
import pytest

from trueport.core.errors import ToolError
from trueport.isolation import Ending, Worker
from trueport.isolation._output import TAIL_BYTES

REPOSITORY = Path(__file__).parents[3]


def test_events_arrive_in_order_and_live(run):
    seen = []
    outcome = run("events", {"count": 500}, on_event=seen.append)
    assert seen == [{"number": number} for number in range(500)]
    assert outcome.events == tuple(seen)


def test_events_from_several_threads_are_whole(run):
    assert len(run("events_from_threads", {"count": 200}).events) == 800


def test_events_of_an_earlier_request_are_not_those_of_the_next(run):
    run("talk_later")
    assert run("peak", {"mb": 100}).events == ()


def test_warm_worker_is_the_same_process_after_results_and_errors(run):
    pid = run("echo").value["pid"]
    run("raise_", {"what": "value"})
    run("raise_", {"what": "usage"})
    assert run("echo").value["pid"] == pid


@pytest.mark.parametrize(
    ("target", "payload"), [("leave", {"code": 0}), ("sys_exit", {"code": 0}), ("raise_", {"what": "memory"})]
)
def test_worker_restarts_after_it_was_taken_down(run, target, payload):
    pid = run("echo").value["pid"]
    run(target, payload)
    outcome = run("echo")
    assert outcome.kind is Ending.RESULT
    assert outcome.value["pid"] != pid


def test_worker_that_died_between_requests_is_replaced(run, worker):
    pid = run("echo").value["pid"]
    os.kill(pid, signal.SIGKILL)
    # The first thread may be gone before the others are; only then can the process be waited for.
    while psutil.Process(pid).status() != psutil.STATUS_ZOMBIE or len(list(Path(f"/proc/{pid}/task").iterdir())) > 1:
        pass
    assert run("echo").kind is Ending.RESULT


def test_start_ahead_of_the_first_request(run, worker):
    worker.start()
    pid = worker.pid
    assert run("echo").value["pid"] == pid


def test_megabytes_of_output_cost_their_tail_only(run):
    outcome = run("print_much", {"mb": 50})
    assert outcome.kind is Ending.RESULT
    assert outcome.stdout_tail.endswith("the last line\n")
    assert outcome.stdout_tail.startswith("[52,")
    assert len(outcome.stdout_tail) < TAIL_BYTES + 100
    assert outcome.stderr_tail == "\x1b[31mred\n"


def test_output_belongs_to_the_request_that_wrote_it(run):
    run("print_much", {"mb": 1})
    assert run("echo").output_tail == ""


def test_nothing_is_forwarded_unless_asked(run, capfd):
    run("print_much", {"mb": 0})
    assert capfd.readouterr() == ("", "")


def test_echo_forwards_to_standard_error_without_control_characters(no_leftovers, capfd):
    with Worker(allow=("tests",), echo=True) as worker:
        worker.run("tests.unit.isolation.targets:print_much", {"mb": 0})
    out, err = capfd.readouterr()
    assert out == ""
    assert "the last line\n" in err
    assert "?[31mred" in err


def test_processes_left_behind_end_with_the_worker(run, worker):
    assert run("leave_processes_behind").kind is Ending.RESULT
    assert run("echo").kind is Ending.RESULT
    worker.close()


def test_fork_of_the_worker_does_not_answer_in_its_place(run):
    assert run("fork_returns").value == {"who": "the original"}


def test_locked_folder_is_removed(run, worker):
    folder = Path(run("locked_folder").value["folder"])
    assert folder.exists()
    worker.close()
    assert not folder.exists()


def test_target_outside_the_allow_list(no_leftovers):
    with Worker() as worker:
        for target in ("tests.unit.isolation.targets:echo", "os:system", "trueport", "trueport.x:y.z", "trueportx.a:b"):
            with pytest.raises(ValueError, match="expected a target"):
                worker.run(target, {})
        assert worker.pid is None


def test_environment_is_added_to(no_leftovers, monkeypatch):
    monkeypatch.setenv("FROM_PARENT", "a")
    with Worker(allow=("tests",), env={"FROM_CALLER": "b"}) as worker:
        for name, value in (("FROM_PARENT", "a"), ("FROM_CALLER", "b")):
            assert worker.run("tests.unit.isolation.targets:environment", {"name": name}).value["value"] == value


def test_main_of_the_caller_is_not_imported_again(run):
    assert run("load", blob=cloudpickle.dumps(lambda: __import__("sys").modules["__main__"].__spec__.name)).value == {
        "value": "trueport.isolation.worker"
    }


def test_the_current_folder_provides_no_modules(run, tmp_path, monkeypatch):
    (tmp_path / "msgspec.py").write_text("raise SystemExit('shadowed')")
    monkeypatch.chdir(tmp_path)
    assert run("echo").kind is Ending.RESULT


def test_interrupt_kills_the_worker_and_propagates(run, worker):
    # Shells start commands in the background with this signal ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            run("sleep", on_event=lambda event: os.kill(os.getpid(), signal.SIGINT))
    finally:
        signal.signal(signal.SIGINT, before)
    assert worker.pid is None


def test_error_of_the_event_handler_propagates(run, worker):
    def fail(event):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run("sleep", on_event=fail)
    assert worker.pid is None


def test_closed_worker_refuses(run, worker):
    worker.close()
    with pytest.raises(RuntimeError, match="closed"):
        run("echo")


def test_worker_that_was_forgotten_is_ended(no_leftovers):
    worker = Worker(allow=("tests",))
    pid = worker.run("tests.unit.isolation.targets:echo", {}).value["pid"]
    del worker
    assert not psutil.pid_exists(pid)


def test_worker_closed_by_another_thread_is_no_crash_of_the_model(run, worker):
    def close_elsewhere(event):
        thread = threading.Thread(target=worker.close)
        thread.start()
        thread.join()

    with pytest.raises(RuntimeError, match="closed while it ran"):
        run("sleep", on_event=close_elsewhere)


def test_interpreter_that_does_not_exist(no_leftovers):
    with Worker(python="/nowhere/python") as worker, pytest.raises(ToolError, match="/nowhere/python"):
        worker.run("trueport.isolation.worker:main", {})


def test_worker_outlives_the_thread_that_started_it(run, worker):
    thread = threading.Thread(target=worker.start)
    thread.start()
    thread.join()
    pid = worker.pid
    assert run("echo").value["pid"] == pid


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("target", ["sleep", "hold_the_lock"])
def test_end_of_the_parent_ends_the_worker(no_leftovers, number, target):
    """`no_leftovers` then sees that the worker, its guardian and its files go although nobody tidied up."""
    # Shells start commands in the background with SIGINT ignored, and processes inherit that.
    script = f"""
        import signal
        signal.signal(signal.SIGINT, signal.default_int_handler)
        from trueport.isolation import Worker
        with Worker(allow=("tests",)) as worker:
            worker.run("tests.unit.isolation.targets:{target}", {{}}, on_event=lambda event: print("up", flush=True))
    """
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=REPOSITORY,
    ) as parent:
        assert parent.stdout.readline() == b"up\n"
        parent.send_signal(number)
        parent.wait(10)


def test_start_of_a_worker_is_cheap(run):
    """A guard against heavy imports, not a benchmark; frameworks take more than a second."""
    before = time.process_time()
    run("echo")
    assert time.process_time() - before < 1.0


def test_package_imports_no_framework():
    code = (
        "import sys, trueport.isolation; print([m for m in ('torch', 'numpy', 'onnx', 'psutil') if m in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"


# ---------------------------------------------------------------------- forks of a worker


def test_a_request_in_a_fork_leaves_the_worker_as_it_was(run, worker):
    first = run("echo", {"a": 1}, preload=["json"], blob=b"xy")
    second = run("echo", preload=["json"])
    assert first.value["payload"] == {"a": 1}
    assert first.value["blob"] == 2
    assert len({first.value["pid"], second.value["pid"], worker.pid}) == 3
    assert run("echo").value["pid"] == worker.pid


def test_a_fork_finds_the_modules_imported_and_nothing_that_another_fork_did(run):
    assert run("remember", {"module": "wave"}, preload=["wave"]).value == {"imported": True, "before": 0}
    assert run("remember", {"module": "wave"}, preload=["wave"]).value == {"imported": True, "before": 0}
    assert run("remember", {"module": "wave"}).value == {"imported": True, "before": 0}
    assert run("remember", {"module": "wave"}).value == {"imported": True, "before": 1}


def test_events_of_a_fork_arrive_in_order(run):
    assert [event["number"] for event in run("events", {"count": 50}, preload=[]).events] == list(range(50))


def test_an_error_in_a_fork_is_that_of_the_request(run, worker):
    outcome = run("raise_derived", preload=[])
    assert outcome.kind is Ending.USAGE_ERROR
    assert run("echo").value["pid"] == worker.pid


def test_a_crash_in_a_fork_is_a_crash(run):
    outcome = run("segfault", preload=[])
    assert (outcome.kind, outcome.signal) == (Ending.SIGNAL, "SIGSEGV")
    assert "segfault" in outcome.traceback
    assert [event["stage"] for event in outcome.events] == ["node-conversion"]


@pytest.mark.parametrize("code", [0, 3])
def test_a_fork_that_leaves_gives_no_result(run, code):
    outcome = run("leave", {"code": code}, preload=[])
    assert (outcome.kind, outcome.exit_code) == (Ending.EXITED, code)
    assert run("echo", preload=[]).kind is Ending.RESULT


def test_a_fork_that_hangs_is_ended(run):
    assert run("sleep", preload=[], timeout_s=1.5).kind is Ending.TIMEOUT
    assert run("echo", preload=[]).kind is Ending.RESULT
