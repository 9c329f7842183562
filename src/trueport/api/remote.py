"""What runs in the worker. Plain values in, plain values out."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import msgspec

from trueport.core.options import CheckOptions
from trueport.core.result import CheckResult

Emit = Callable[[dict[str, Any]], None]


def check_path(payload: dict[str, Any], blob: bytes | None, emit: Emit) -> dict[str, Any]:
    """Returns the result of checking `payload['model']`."""
    del blob
    options = msgspec.convert(payload["options"], CheckOptions)
    emit({"event": "phase", "name": "loading the model"})
    from trueport.adapters.sources import load_subject

    subject = load_subject(
        payload["model"],
        trust_pickle=options.trust_pickle,
        inputs=options.inputs,
        input_shapes=options.input_shapes,
        seed=options.seed,
    )
    return _encode(_session(subject, options, emit))


def check_object(payload: dict[str, Any], blob: bytes | None, emit: Emit) -> dict[str, Any]:
    """Returns the result of checking the module that the parent sent along."""
    import cloudpickle

    assert blob is not None
    options = msgspec.convert(payload["options"], CheckOptions)
    # The bytes come through a private pipe from the process that started this one, never from a file.
    return _encode(check_subject(cloudpickle.loads(blob), options, emit))


def check_subject(subject: Any, options: CheckOptions, emit: Emit) -> CheckResult:
    """Returns the result of checking (module, args, kwargs, dynamic_shapes, export_options) in this process."""
    from trueport.adapters.sources import subject_from_object

    model, args, kwargs, dynamic_shapes, export_options = subject
    made = subject_from_object(model, args, kwargs, dynamic_shapes=dynamic_shapes, export_options=export_options)
    return _session(made, options, emit)


def _session(subject: Any, options: CheckOptions, emit: Emit) -> CheckResult:
    from trueport.api.session import Session

    _limit_threads(options.threads)
    return Session(subject, options, emit).run()


def _encode(result: CheckResult) -> dict[str, Any]:
    value: dict[str, Any] = msgspec.to_builtins(result)
    return value


def _limit_threads(threads: int) -> None:
    """Limits a framework that the source has brought in; a worker's environment limits what is loaded later."""
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.set_num_threads(threads)
