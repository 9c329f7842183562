"""Checks a model from the parent's side: in a worker with limits, or here when asked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import msgspec

from trueport.api.save import refuse_foreign
from trueport.core.errors import SourceError, UsageError
from trueport.core.options import CheckOptions
from trueport.core.result import Check, CheckResult, SubjectInfo, exit_code

if TYPE_CHECKING:
    from trueport.isolation import Outcome, Worker

OnEvent = Callable[[dict[str, Any]], None]

PATH_TARGET = "trueport.api.remote:check_path"
OBJECT_TARGET = "trueport.api.remote:check_object"
_TRACEBACK_CHARACTERS = 2000


def check_path(model: str, options: CheckOptions | None = None, *, on_event: OnEvent | None = None) -> CheckResult:
    """Returns the checks of the model that a path or zoo name stands for.

    Args:
        model: `file.py:NAME`, `model.pt2` or `zoo:hf/NAME`.
        options: of the check.
        on_event: receives progress as dictionaries with the key `event`.

    Raises:
        UsageError: the model or an option cannot be used.
        MissingToolError: a requested tool is not installed.
    """
    return perform(path_request(model, options or CheckOptions()), on_event)


def check(
    model: Any,
    args: tuple[Any, ...] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    dynamic_shapes: Any = None,
    export_options: Mapping[str, Any] | None = None,
    options: CheckOptions | None = None,
    on_event: OnEvent | None = None,
    **settings: Any,
) -> CheckResult:
    """Returns the checks of a module in memory.

    The module travels to a worker by cloudpickle through a private pipe; one that cannot travel is refused with
    advice. `isolate=False` checks it in this process.

    Args:
        model: an `nn.Module`, in the mode in which it is to be checked.
        args: positional arguments of one call.
        kwargs: keyword arguments of that call.
        dynamic_shapes: as `torch.export.export` takes it.
        export_options: further options of the exporter.
        options: all options as one value; single ones can be given as keywords instead (`converters=`, `seed=`, ...).
        on_event: receives progress.
        **settings: fields of `CheckOptions`.

    Raises:
        UsageError: the module cannot travel, or an option does not exist.

    >>> import torch
    >>> check(torch.nn.ReLU(), (torch.ones(2),), isolate=False).checks[0].verdict.value
    'faithful'
    """
    options = merged_options(options, settings)
    subject = (model, tuple(args), dict(kwargs or {}), dynamic_shapes, dict(export_options or {}))
    if not options.isolate:
        from trueport.api.remote import check_subject

        refuse_foreign(options)
        return check_subject(subject, options, on_event or (lambda _: None))
    return perform(object_request(subject, options), on_event)


@dataclass(frozen=True)
class Request:
    """What a worker is asked.

    Attributes:
        target: the function that answers.
        payload: its arguments besides the options.
        blob: the module as bytes, or None.
        options: of the check.
        origin: the model as the user named it.
    """

    target: str
    payload: Mapping[str, Any]
    blob: bytes | None
    options: CheckOptions
    origin: str


def path_request(model: str, options: CheckOptions) -> Request:
    """Returns the request for a model that a path or zoo name stands for."""
    return Request(PATH_TARGET, {"model": model}, None, options, model)


def object_request(subject: tuple[Any, ...], options: CheckOptions) -> Request:
    """Returns the request for (module, args, kwargs, dynamic_shapes, export_options).

    Raises:
        UsageError: the module cannot travel.
    """
    return Request(OBJECT_TARGET, {}, _travel(subject), options, "<object>")


def merged_options(options: CheckOptions | None, settings: Mapping[str, Any]) -> CheckOptions:
    """Returns the options with single ones replaced by keywords.

    Raises:
        UsageError: there is no such option, or it has another type.
    """
    fields = msgspec.to_builtins(options) if options is not None else {}
    unknown = sorted(set(settings) - set(CheckOptions.__dataclass_fields__))
    if unknown:
        raise UsageError(
            f"check() has no option {', '.join(unknown)}; there are: {', '.join(CheckOptions.__dataclass_fields__)}"
        )
    if not settings:
        return options or CheckOptions()
    plain = {name: msgspec.to_builtins(value) for name, value in settings.items()}
    for name in ("converters", "runtimes"):
        if isinstance(plain.get(name), str):
            plain[name] = [plain[name]]
    try:
        return msgspec.convert({**fields, **plain}, CheckOptions)
    except msgspec.ValidationError as error:
        raise UsageError(f"check(): {error}") from error


def _travel(subject: Any) -> bytes:
    """Returns the module as bytes for the worker's private pipe."""
    import cloudpickle

    try:
        return bytes(cloudpickle.dumps(subject))
    except Exception as error:
        raise UsageError(
            f"the module cannot travel to a worker process ({type(error).__name__}: {error}); put it into a file and "
            "check 'file.py:NAME', or pass isolate=False"
        ) from error


def perform(
    request: Request, on_event: OnEvent | None, *, worker: Worker | None = None, preload: Sequence[str] | None = None
) -> CheckResult:
    """Returns the result of a request: in workers of its own, in the given one or forks of it, or here where asked."""
    refuse_foreign(request.options)
    if not request.options.isolate:
        from trueport.api import remote

        emit = on_event or (lambda _: None)
        payload = {**request.payload, "options": msgspec.to_builtins(request.options)}
        return decode(remote.check_path(payload, request.blob, emit))
    return _in_workers(request, on_event, worker, preload)


def fresh_worker(threads: int) -> Worker:
    """Returns a worker whose numerical libraries use this many threads.

    They read the number when they are loaded, so it must stand in the environment.
    """
    from trueport.isolation import Worker

    return Worker(env=dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), str(threads)))


@contextmanager
def _lent(worker: Worker | None, threads: int) -> Iterator[Worker]:
    """Gives the warm worker, which stays, or a fresh one, which ends with the block."""
    if worker is not None:
        yield worker
        return
    with fresh_worker(threads) as fresh:
        yield fresh


def _in_workers(
    request: Request, on_event: OnEvent | None, warm: Worker | None, preload: Sequence[str] | None
) -> CheckResult:
    """Checks every converter and runtime; a lost worker costs one check, and a fresh one goes on with the rest."""
    from trueport.api.afterlife import lost_check
    from trueport.isolation import Ending

    checks: list[Check] = []
    subject: Any = None
    pending = [request.options]
    while pending:
        part = pending.pop(0)
        with _lent(warm, part.threads) as worker:
            outcome = worker.run(
                request.target,
                {**request.payload, "options": msgspec.to_builtins(part)},
                blob=request.blob,
                timeout_s=part.timeout_s,
                memory_mb=part.memory_mb,
                preload=preload,
                on_event=on_event,
            )
        if outcome.kind is Ending.RESULT:
            assert outcome.value is not None
            result = decode(outcome.value)
            subject, checks = result.subject, [*checks, *result.checks]
            continue
        outcome.reraise()
        seen = next((e for e in outcome.events if e.get("event") == "subject"), None)
        if seen is None and subject is None:
            raise _lost_source(request.origin, outcome)
        if seen is not None:
            subject = subject or msgspec.convert(seen["subject"], SubjectInfo)
        done = [msgspec.convert(e["check"], Check) for e in outcome.events if e.get("event") == "check"]
        lost = lost_check(outcome, part, request.origin)
        checks += [*done, lost]
        names = seen["converters"] if seen is not None else part.converters
        pending = _rest(part, names, len(done) + 1) + pending
    return CheckResult(subject, tuple(checks), exit_code([c.verdict for c in checks]))


def _lost_source(origin: str, outcome: Outcome) -> SourceError:
    """Returns the error for a worker that was lost before the source had a result."""
    stack = outcome.traceback.rstrip()[-_TRACEBACK_CHARACTERS:]
    where = f"\n{stack}" if stack else ""
    return SourceError(
        f"'{origin}': the source did not get through its own example: {outcome.message or outcome.kind}; "
        f"nothing was converted{where}"
    )


def _rest(options: CheckOptions, names: Sequence[str | None], done: int) -> list[CheckOptions]:
    """Returns options for what is left after `done` checks, converter by converter; None stands for no converter."""
    pairs = [(name, runtime) for name in names for runtime in options.runtimes][done:]
    rest = []
    for name in dict.fromkeys(name for name, _ in pairs):
        runtimes = tuple(runtime for n, runtime in pairs if n == name)
        converters = options.converters if name is None else (name,)
        rest.append(replace(options, converters=converters, runtimes=runtimes))
    return rest


def decode(value: dict[str, Any]) -> CheckResult:
    """Returns the result that a worker gave as plain values."""
    return msgspec.convert(value, CheckResult)
