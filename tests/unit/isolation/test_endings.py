"""Every way in which a request can end comes out as the ending that it was, and leaves nothing behind."""

from __future__ import annotations

import math
import signal

import pytest

from trueport.core.errors import MissingToolError, SourceError, UsageError
from trueport.isolation import Ending, RemoteError


def test_result_with_payload_and_blob(run):
    outcome = run("echo", {"text": "a", "numbers": [1, 2.5, math.inf]}, blob=b"x" * 3_000_000)
    assert outcome.kind is Ending.RESULT
    assert outcome.value["payload"] == {"text": "a", "numbers": [1, 2.5, math.inf]}
    assert outcome.value["blob"] == 3_000_000
    outcome.reraise()


def test_nan_survives_the_way(run):
    assert math.isnan(run("echo", {"score": math.nan}).value["payload"]["score"])


@pytest.mark.parametrize(("target", "expected"), [("not_a_dict", "expected a dict"), ("not_encodable", "object")])
def test_a_value_that_cannot_travel_is_an_error(run, target, expected):
    outcome = run(target)
    assert outcome.kind is Ending.ERROR
    assert expected in outcome.message


def test_segfault(run):
    outcome = run("segfault")
    assert (outcome.kind, outcome.signal) == (Ending.SIGNAL, "SIGSEGV")
    assert outcome.events == ({"event": "stage", "stage": "node-conversion"},)
    assert "in segfault" in outcome.traceback
    assert outcome.output_tail == "before the end\n"


def test_abort(run):
    assert run("abort").signal == "SIGABRT"


@pytest.mark.parametrize("code", [0, 3])
def test_os_exit_is_no_result_even_with_code_zero(run, code):
    outcome = run("leave", {"code": code})
    assert (outcome.kind, outcome.exit_code, outcome.value) == (Ending.EXITED, code, None)


@pytest.mark.parametrize(("code", "expected"), [(None, 0), (0, 0), (7, 7), ("out of coffee", 1)])
def test_sys_exit(run, code, expected):
    outcome = run("sys_exit", {"code": code})
    assert (outcome.kind, outcome.exit_code) == (Ending.EXITED, expected)
    assert "sys.exit" in outcome.message
    assert "in sys_exit" in outcome.traceback


@pytest.mark.parametrize("target", ["sleep", "spin", "hold_the_lock"])
def test_hang_says_where_it_hung(run, target):
    outcome = run(target, timeout_s=1.0)
    assert outcome.kind is Ending.TIMEOUT
    assert f"in {target}" in outcome.traceback
    assert 1.0 <= outcome.elapsed_s < 20.0


def test_hang_that_ignores_signals(run):
    outcome = run("sleep", {"ignore": True}, timeout_s=1.0)
    assert outcome.kind is Ending.TIMEOUT
    assert outcome.events == ({"event": "phase", "name": "sleeping"},)


def test_stopped_process(run):
    assert run("stop", timeout_s=1.0).kind is Ending.TIMEOUT


def test_a_request_that_is_never_read_times_out(run):
    run("stop", timeout_s=0.5)
    assert run("stop", blob=b"x" * 10_000_000, timeout_s=1.0).kind is Ending.TIMEOUT


def test_memory_growth(run):
    outcome = run("grow", memory_mb=300)
    assert outcome.kind is Ending.MEMORY
    assert 300 < outcome.peak_memory_mb < 1400


def test_memory_growth_of_a_child_in_a_session_of_its_own(run):
    assert run("child_grows", memory_mb=300, timeout_s=60).kind is Ending.MEMORY


@pytest.mark.parametrize("target", ["one_giant_bytearray", "one_giant_array"])
def test_one_giant_allocation_is_refused_before_it_hurts(run, target):
    outcome = run(target, memory_mb=500)
    assert outcome.kind is Ending.MEMORY
    assert outcome.peak_memory_mb < 500


def test_allocation_refused_by_a_framework_and_wrapped_by_a_converter(run):
    outcome = run("raise_", {"what": "allocator"})
    assert (outcome.kind, outcome.exception_type) == (Ending.MEMORY, "ValueError")


@pytest.mark.slow
def test_the_framework_still_says_it_in_these_words(run):
    outcome = run("one_giant_tensor", memory_mb=4000)
    assert (outcome.kind, outcome.exception_type) == (Ending.MEMORY, "ValueError")
    assert "you tried to allocate" in outcome.traceback


def test_memory_error(run):
    assert run("raise_", {"what": "memory"}).kind is Ending.MEMORY


def test_peak_memory_is_that_of_the_request(run):
    assert run("peak", {"mb": 200}).peak_memory_mb > 200
    assert run("echo").peak_memory_mb < 200


def test_exception_with_text_that_cannot_be_encoded(run):
    outcome = run("raise_", {"what": "value"})
    assert (outcome.kind, outcome.exception_type, outcome.message) == (
        Ending.ERROR,
        "ValueError",
        r"a \ud800 surrogate",
    )
    assert "in raise_" in outcome.traceback
    with pytest.raises(RemoteError, match="ValueError: a"):
        outcome.reraise()


def test_exception_whose_text_cannot_be_read(run):
    outcome = run("raise_", {"what": "hostile"})
    assert outcome.kind is Ending.ERROR
    assert outcome.exception_type == "tests.unit.isolation.targets.HostileError"


def test_keyboard_interrupt_raised_by_a_model_is_an_exception_like_any_other(run):
    assert run("raise_", {"what": "interrupt"}).exception_type == "KeyboardInterrupt"


@pytest.mark.parametrize(
    ("what", "kind", "error"),
    [
        ("usage", Ending.USAGE_ERROR, UsageError),
        ("source", Ending.USAGE_ERROR, SourceError),
        ("missing", Ending.MISSING_TOOL, MissingToolError),
    ],
)
def test_errors_of_our_own_tree_come_back_as_such(run, what, kind, error):
    outcome = run("raise_", {"what": what})
    assert outcome.kind is kind
    with pytest.raises(error) as raised:
        outcome.reraise()
    assert type(raised.value) is error
    if error is MissingToolError:
        assert raised.value.install == "pip install openvino"


def test_an_error_derived_elsewhere_comes_back_as_its_base(run):
    with pytest.raises(UsageError, match="a module of its own"):
        run("raise_derived").reraise()


def test_killed_from_outside_is_told_apart_from_our_limits(run):
    outcome = run("leave_processes_behind", {"then": "die"})
    assert (outcome.kind, outcome.signal) == (Ending.SIGNAL, "SIGKILL")


def test_closed_descriptors(run):
    assert run("close_descriptors").kind is Ending.EXITED


def test_rubbish_on_the_pipe_is_never_a_result(run):
    assert run("write_rubbish", timeout_s=10).kind is not Ending.RESULT


def test_signal_without_a_name():
    from trueport.isolation._parent import _signal_name

    assert _signal_name(signal.SIGRTMIN + 3) == f"signal {signal.SIGRTMIN + 3}"
