"""`torch.onnx.export(..., dynamo=False)`: the exporter built on tracing, cut where it lets itself be cut.

It is run as users run it, twice: without constant folding for the node conversion, with it for the optimization. The
traced graph is taken from the exporter's own run, so that what it does differently from `torch.jit.trace` is seen.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import onnx
import torch
from torch import Tensor
from torch.onnx._internal.torchscript_exporter import utils as exporter
from torch.utils import _pytree as pytree

from trueport.adapters.converters._onnx_checkpoint import file_checkpoint, model_checkpoint
from trueport.adapters.converters._torch_blame import blame
from trueport.adapters.float64.constants import KnownNumbers
from trueport.adapters.float64.torch.module import evaluate_call, noisy_call, rebuild, traced_call
from trueport.adapters.float64.torch.state import preserved
from trueport.adapters.protocols import Array, Checkpoint, ConverterOptions, StageFailure, Wide
from trueport.core.errors import UsageError
from trueport.core.result import NodeRef
from trueport.core.subject import Example, Subject
from trueport.core.taxonomy import Stage
from trueport.core.trace import TracedRun
from trueport.core.versions import package_versions
from trueport.inputs.draw import InputSet


class TorchScript:
    """The exporter built on TorchScript tracing."""

    name = "torch-script"
    frameworks = frozenset({"torch"})
    plan = (
        (Stage.LOAD_MODEL, "traced graph"),
        (Stage.NODE_CONVERSION, "ONNX before constant folding"),
        (Stage.OPTIMIZATION, "ONNX after constant folding"),
        (Stage.EXPORT, "file read back"),
    )

    def convert(self, subject: Subject, options: ConverterOptions) -> Iterator[Checkpoint]:
        """Yields the four checkpoints of `plan`."""
        if subject.program is not None:
            raise UsageError("torch-script takes modules, not exported programs; use --converter torch-dynamo")
        settings = _settings(subject, options)
        torch._C._jit_set_onnx_log_enabled(False)  # it prints whole graphs when a translation fails
        with _captured_trace(options.entered) as trace:
            before, error = _attempt(subject, settings, fold=False)
        if trace.graph is None:
            assert error is not None
            raise error
        yield Checkpoint(Stage.LOAD_MODEL, self.plan[0][1], TracedGraph(trace, subject.examples[0]))
        if error is not None:
            raise StageFailure(_stage_of(error)) from error
        assert before is not None
        facts = {"opset_requested": settings.get("opset_version")}
        yield model_checkpoint(Stage.NODE_CONVERSION, self.plan[1][1], before, options, facts)
        after, error = _attempt(subject, settings, fold=True)
        if error is not None:
            raise error
        assert after is not None
        yield model_checkpoint(Stage.OPTIMIZATION, self.plan[2][1], after, options, facts)
        path = Path(options.folder) / "model.onnx"
        _export(subject, settings, str(path), fold=True)
        yield file_checkpoint(self.plan[3][1], path, options, facts)

    def switches(self, model: Any, options: ConverterOptions) -> None:
        """Returns nothing: there is no optimizer whose parts could be switched off."""
        del model, options

    def blame(self, error: BaseException) -> tuple[NodeRef, ...]:
        """Returns the operator and the line of the model at which the exporter raised."""
        return blame(error)

    def versions(self) -> dict[str, str]:
        """Returns the versions of torch, onnxscript and onnx."""
        return package_versions("torch", "onnxscript", "onnx-ir", "onnx")


class TracedGraph:
    """The graph that the exporter traced, before it translates operators."""

    def __init__(self, trace: _Trace, example: Example) -> None:
        self._function = torch._C._create_function_from_graph("forward", trace.graph)
        self._parameters = list(trace.parameters)
        self._example = example

    def evaluate(self, inputs: InputSet, known: KnownNumbers) -> list[Wide]:
        """Returns the outputs in float64."""
        call, leaves = self._call(inputs)
        return evaluate_call(call, leaves, None, known)

    def noisy(self, inputs: InputSet, *, draws: int, seed: int, known: KnownNumbers) -> list[list[Array]]:
        """Returns evaluations with the noise of float64."""
        call, leaves = self._call(inputs)
        return noisy_call(call, leaves, draws=draws, seed=seed, known=known)

    def trace(self, inputs: InputSet, known: KnownNumbers, *, draws: int, seed: int, limit_bytes: int) -> TracedRun:
        """Returns one run in float64 with the values of all operators; see `GraphExecutable.trace`."""
        call, leaves = self._call(inputs)
        return traced_call(call, leaves, draws=draws, seed=seed, known=known, limit_bytes=limit_bytes)

    def _call(self, inputs: InputSet) -> tuple[Callable[[], Any], list[Any]]:
        args, kwargs = rebuild(self._example, inputs.arrays)
        leaves = [leaf for leaf in pytree.tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
        parameters = [p.detach().clone() if isinstance(p, Tensor) else p for p in self._parameters]

        def run() -> Any:
            # From the second run on the interpreter would run a graph that it rewrote for itself, whose operators are
            # not those of the trace and do not all pass through the tape.
            with torch.jit.optimized_execution(False):
                return self._function(*leaves, *parameters)

        return run, leaves


class _Trace:
    """What was seen of the exporter's own trace."""

    def __init__(self) -> None:
        self.graph: Any = None
        self.parameters: tuple[Any, ...] = ()


@contextmanager
def _captured_trace(entered: Callable[[Stage], None]) -> Iterator[_Trace]:
    """Copies the graph when the exporter has traced it and before its passes change it."""
    trace = _Trace()
    original = exporter._create_jit_graph

    def create(model: Any, args: Any) -> Any:
        result = original(model, args)
        trace.graph, trace.parameters = result[0].copy(), tuple(result[1])
        entered(Stage.NODE_CONVERSION)
        return result

    with mock.patch.object(exporter, "_create_jit_graph", create):
        yield trace


def _settings(subject: Subject, options: ConverterOptions) -> dict[str, Any]:
    extra = {k: v for k, v in subject.export_options.items() if k not in ("dynamo", "verbose", "fallback")}
    if options.input_names and "input_names" not in extra:
        extra["input_names"] = list(options.input_names)
    if options.dynamic_axes and "dynamic_axes" not in extra:
        names = list(extra["input_names"])
        renamed = dict(zip(options.input_names, names, strict=False))
        extra["dynamic_axes"] = {renamed.get(n, n): dict(axes) for n, axes in options.dynamic_axes.items()}
    if options.opset is not None:
        extra["opset_version"] = options.opset
    return extra


def _export(subject: Subject, settings: Mapping[str, Any], target: Any, *, fold: bool) -> None:
    args, kwargs = rebuild(subject.examples[0], _tensors(subject.examples[0]))
    with preserved(subject.model):
        torch.onnx.export(
            subject.model, args, target, kwargs=kwargs or None, dynamo=False,
            **{"do_constant_folding": fold, **settings},
        )  # fmt: skip


def _tensors(example: Example) -> tuple[Array, ...]:
    from trueport.adapters.float64.torch.module import to_array

    leaves = pytree.tree_leaves((tuple(example.args), dict(example.kwargs)))
    return tuple(to_array(leaf) for leaf in leaves if isinstance(leaf, Tensor))


def _attempt(
    subject: Subject, settings: Mapping[str, Any], *, fold: bool
) -> tuple[onnx.ModelProto | None, Exception | None]:
    buffer = io.BytesIO()
    try:
        _export(subject, {**settings, "do_constant_folding": fold}, buffer, fold=fold)
    except Exception as error:  # noqa: BLE001 - whatever the exporter raises is a result
        return None, error
    return onnx.load_from_string(buffer.getvalue()), None


def _stage_of(error: Exception) -> Stage:
    """The stage that was running, from the functions on the stack."""
    running = set()
    traceback = error.__traceback__
    while traceback is not None:
        running.add(traceback.tb_frame.f_code.co_name)
        traceback = traceback.tb_next
    return Stage.NODE_CONVERSION if "_model_to_graph" in running else Stage.EXPORT
