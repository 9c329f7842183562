"""Many checks in one warm worker, and what an exporter remembers from one to the next.

A worker that has imported the frameworks answers in a fraction of the time of a fresh one. But exporters keep state:
what this process captured before can change what is captured now. So every bad verdict of a warm worker is confirmed
in a fresh one, and where the two disagree, that is a finding of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Any

from trueport.api.check import (
    OnEvent,
    Request,
    fresh_worker,
    merged_options,
    object_request,
    path_request,
    perform,
)
from trueport.core.errors import UsageError
from trueport.core.options import CheckOptions
from trueport.core.result import Check, CheckResult, Finding, exit_code
from trueport.core.signature import signature
from trueport.core.taxonomy import Kind, Stage, Verdict

if TYPE_CHECKING:
    from trueport.isolation import Worker

_DOUBTFUL = frozenset({Verdict.DIVERGENT, Verdict.CRASHED})


class Checker:
    """Keeps one warm worker for many checks; use it as a context manager.

    Every `divergent` or `crashed` check that was not the first of its worker is made again, alone in a fresh one; only
    that a runtime lacks a kernel depends on nothing. Where
    verdict or stage differ, the fresh check is returned, with a finding of kind `state-dependent` that says what the
    warm one said. A `faithful` check is not made again: a wrong model that is right only because of what ran before
    would need state that repairs.

    Args:
        options: of all checks.
        preload: modules that are imported once, in a second worker: bad verdicts are then confirmed in forks of it
            instead of in new processes, which costs a fraction. They must not need threads that importing them starts.
        **settings: single fields of `CheckOptions`.

    Raises:
        UsageError: an option does not exist, or the checks are not to be isolated.

    >>> import torch
    >>> with Checker(samples=1) as checker:
    ...     [checker.check(m, (torch.ones(2),)).exit_code for m in (torch.nn.ReLU(), torch.nn.Tanh())]
    [0, 0]
    """

    def __init__(
        self, options: CheckOptions | None = None, *, preload: Sequence[str] | None = None, **settings: Any
    ) -> None:
        self._options = merged_options(options, settings)
        _require_isolation(self._options)
        self._preload = preload
        self._worker: Worker | None = None
        self._template: Worker | None = None
        self._threads = 0
        self._closed = False

    def __enter__(self) -> Checker:
        """Returns itself; the worker starts with the first check."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Ends the worker."""
        self.close()

    def close(self) -> None:
        """Ends the worker; no check can follow."""
        self._closed = True
        self._drop()

    def check(
        self,
        model: Any,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
        *,
        dynamic_shapes: Any = None,
        export_options: Mapping[str, Any] | None = None,
        on_event: OnEvent | None = None,
        **settings: Any,
    ) -> CheckResult:
        """Returns the checks of a module in memory; arguments and errors are those of `trueport.check`."""
        options = merged_options(self._options, settings)
        subject = (model, tuple(args), dict(kwargs or {}), dynamic_shapes, dict(export_options or {}))
        return self._perform(object_request(subject, options), on_event)

    def check_path(self, model: str, *, on_event: OnEvent | None = None, **settings: Any) -> CheckResult:
        """Returns the checks of a model by path or zoo name; arguments and errors as for `trueport.check_path`."""
        return self._perform(path_request(model, merged_options(self._options, settings)), on_event)

    def _perform(self, request: Request, on_event: OnEvent | None) -> CheckResult:
        _require_isolation(request.options)
        worker = self._warm(request.options.threads)
        fresh = worker.pid is None
        result = perform(request, on_event, worker=worker)
        checks = [
            # The first check of a fresh worker has nothing that it could depend on.
            self._confirmed(request, check, on_event) if _is_doubtful(check) and (place or not fresh) else check
            for place, check in enumerate(result.checks)
        ]
        return replace(result, checks=tuple(checks), exit_code=exit_code([check.verdict for check in checks]))

    def _warm(self, threads: int) -> Worker:
        """Returns the warm worker; another number of threads needs another process."""
        if self._closed:
            raise RuntimeError("this checker was closed")
        if self._worker is None or self._threads != threads:
            self._drop()
            self._worker, self._threads = fresh_worker(threads), threads
            self._template = None if self._preload is None else fresh_worker(threads)
        return self._worker

    def _confirmed(self, request: Request, warm: Check, on_event: OnEvent | None) -> Check:
        """Returns the check as a fresh worker makes it where that differs, else the warm one."""
        converters = request.options.converters if warm.converter is None else (warm.converter,)
        alone = replace(request.options, converters=converters, runtimes=(warm.runtime,))
        again = replace(request, options=alone)
        (fresh,) = perform(again, on_event, worker=self._template, preload=self._preload).checks
        if (fresh.verdict, fresh.stage) == (warm.verdict, warm.stage):
            return warm
        return replace(fresh, findings=(*fresh.findings, _state_dependent(warm, fresh)))

    def _drop(self) -> None:
        for worker in (self._worker, self._template):
            if worker is not None:
                worker.close()
        self._worker = self._template = None


def _is_doubtful(check: Check) -> bool:
    """Whether a check may hang on what the process did before; which kernels a runtime has does not."""
    lacks = check.stage is Stage.RUNTIME and any(finding.kind is Kind.NO_KERNEL for finding in check.findings)
    return check.verdict in _DOUBTFUL and not lacks


def _require_isolation(options: CheckOptions) -> None:
    if not options.isolate:
        raise UsageError("a Checker always isolates; without isolation use trueport.check(..., isolate=False)")


def _state_dependent(warm: Check, fresh: Check) -> Finding:
    """Returns the finding that says what the warm worker said. It is as material as what was found there."""
    identity = signature(
        stage=warm.stage, symptom=warm.symptom, kind=Kind.STATE_DEPENDENT, converter=warm.converter,
        operators=[warm.verdict, fresh.verdict],
    )  # fmt: skip
    message = (
        f"in a process that had converted other models before, this check was {_said(warm)}; in a fresh process it is "
        f"{_said(fresh)}"
    )
    return Finding(
        identity, Kind.STATE_DEPENDENT, any(finding.material for finding in warm.findings), warm.symptom, warm.stage,
        warm.cause, message, evidence={
            "warm_verdict": warm.verdict, "warm_stage": warm.stage, "warm_explanation": warm.explanation,
            "fresh_verdict": fresh.verdict, "fresh_stage": fresh.stage,
        },
    )  # fmt: skip


def _said(check: Check) -> str:
    return f"{check.verdict} in stage {check.stage}" if check.stage is not None else f"{check.verdict}"
