"""`torch.onnx.export(..., dynamo=True)`, taken apart at its own joints so that every stage can be executed.

The steps, their order and their options are those of `torch.onnx._internal.exporter._core.export` (torch 2.13). What
does not depend on the model (operator registry, decomposition table) is built once per process.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch.onnx._internal.exporter import (
    _capture_strategies,
    _constants,
    _core,
    _dynamic_shapes,
    _ir_passes,
    _registration,
)

from trueport.adapters.converters._onnx_checkpoint import file_checkpoint, model_checkpoint
from trueport.adapters.converters._torch_blame import blame
from trueport.adapters.converters._torch_setup import cached_setup
from trueport.adapters.float64.torch.module import CapturedProgram
from trueport.adapters.protocols import Checkpoint, ConverterOptions, Switches
from trueport.core.errors import UsageError
from trueport.core.result import NodeRef
from trueport.core.subject import Subject
from trueport.core.taxonomy import Stage
from trueport.core.versions import package_versions

if TYPE_CHECKING:
    import onnx

OPTIONS = frozenset(
    {"input_names", "output_names", "opset_version", "dynamic_axes", "external_data", "optimize",
     "custom_translation_table", "keep_initializers_as_inputs", "export_params", "verbose", "dynamo", "fallback"}
)  # fmt: skip
"""Options of `torch.onnx.export` that are passed on."""


class TorchDynamo:
    """The exporter built on `torch.export`."""

    name = "torch-dynamo"
    frameworks = frozenset({"torch"})
    plan = (
        (Stage.LOAD_MODEL, "captured program"),
        (Stage.LOAD_MODEL, "decomposed program"),
        (Stage.NODE_CONVERSION, "ONNX before optimization"),
        (Stage.OPTIMIZATION, "ONNX after optimization"),
        (Stage.EXPORT, "file read back"),
    )

    def convert(self, subject: Subject, options: ConverterOptions) -> Iterator[Checkpoint]:
        """Yields the five checkpoints of `plan`."""
        from torch.onnx._internal._lazy_import import onnxscript_apis

        extra = dict(subject.export_options)
        _refuse_unknown(extra, self.name)
        opset = options.opset or extra.get("opset_version") or _default_opset()
        registry = _registry(max(opset, _constants.TORCHLIB_OPSET), extra.get("custom_translation_table"))
        example = subject.examples[0]
        with cached_setup():
            program, shapes = _capture(subject, extra)
            yield Checkpoint(Stage.LOAD_MODEL, self.plan[0][1], CapturedProgram(program, example))
            lowered = _core._prepare_exported_program_for_export(program, registry=registry)
            yield Checkpoint(Stage.LOAD_MODEL, self.plan[1][1], CapturedProgram(lowered, example))
            onnx_program = _core._exported_program_to_onnx_program(lowered, registry=registry)
        # Until the version is converted the model claims an opset that its operators may not belong to.
        onnx_program.model = onnxscript_apis.convert_version(onnx_program.model, opset)
        yield model_checkpoint(Stage.NODE_CONVERSION, self.plan[2][1], onnx_program.model_proto, options)
        if extra.get("optimize", True):
            onnx_program.optimize()
        yield model_checkpoint(Stage.OPTIMIZATION, self.plan[3][1], onnx_program.model_proto, options)
        yield self._file(onnx_program, shapes, extra, options, opset)

    def switches(self, model: onnx.ModelProto, options: ConverterOptions) -> Switches | None:
        """Returns the parts of `ONNXProgram.optimize`, for the model before optimization; None for other releases."""
        from trueport.adapters.converters import _onnxscript_passes

        del options
        return _onnxscript_passes.switches(model, _optimized, fusions=True)

    def blame(self, error: BaseException) -> tuple[NodeRef, ...]:
        """Returns the operator and the line of the model at which the exporter raised."""
        return blame(error)

    def versions(self) -> dict[str, str]:
        """Returns the versions of torch, onnxscript and onnx."""
        return package_versions("torch", "onnxscript", "onnx-ir", "onnx")

    def _file(
        self, onnx_program: Any, shapes: Any, extra: Mapping[str, Any], options: ConverterOptions, opset: int
    ) -> Checkpoint:
        if extra.get("input_names"):
            _ir_passes.rename_inputs(onnx_program.model, extra["input_names"])
        if extra.get("output_names"):
            _ir_passes.rename_outputs(onnx_program.model, extra["output_names"])
        if shapes is not None:
            onnx_program._rename_dynamic_axes(shapes)
        path = Path(options.folder) / "model.onnx"
        onnx_program.save(
            str(path),
            include_initializers=extra.get("export_params", True),
            keep_initializers_as_inputs=extra.get("keep_initializers_as_inputs", False),
            external_data=extra.get("external_data", True),
        )
        return file_checkpoint(self.plan[4][1], path, options, {"opset_requested": opset})


def _optimized(model: onnx.ModelProto) -> onnx.ModelProto:
    """Returns what `ONNXProgram.optimize` makes of a model."""
    import onnx_ir as ir
    from torch.onnx._internal._lazy_import import onnxscript_apis

    return ir.serde.serialize_model(onnxscript_apis.optimize(ir.serde.deserialize_model(model)))


def _default_opset() -> int:
    from torch.onnx import _constants as onnx_constants

    return int(onnx_constants.ONNX_DEFAULT_OPSET)


def _refuse_unknown(extra: Mapping[str, Any], name: str) -> None:
    unknown = sorted(set(extra) - OPTIONS)
    if unknown:
        raise UsageError(
            f"export_options: {', '.join(unknown)} cannot be passed to {name}; it takes {', '.join(sorted(OPTIONS))}"
        )


@cache
def _plain_registry(opset: int) -> Any:
    return _registration.ONNXRegistry().from_torchlib(opset_version=opset)


def _registry(opset: int, translations: Mapping[Any, Any] | None) -> Any:
    """The operator registry; one with the user's own translations is made for this model alone."""
    if not translations:
        return _plain_registry(opset)
    registry = _registration.ONNXRegistry().from_torchlib(opset_version=opset)
    for operator, translation in translations.items():
        registry.register_op(operator, translation, is_complex=False)
    return registry


def _capture(subject: Subject, extra: Mapping[str, Any]) -> tuple[Any, Any]:
    """Returns the captured program, and the dynamic shapes whose names the file must carry."""
    if subject.program is not None:
        return subject.program, None
    example = subject.examples[0]
    args, kwargs, shapes = tuple(example.args), dict(example.kwargs), subject.dynamic_shapes
    if shapes is None and extra.get("dynamic_axes"):
        shapes, args, kwargs = _dynamic_shapes.from_dynamic_axes_to_dynamic_shapes(
            subject.model, args, kwargs, dynamic_axes=extra["dynamic_axes"],
            input_names=extra.get("input_names"), output_names=set(extra.get("output_names") or ()),
        )  # fmt: skip
    export_shapes, need_names = _dynamic_shapes.convert_str_to_export_dim(shapes)
    first: Exception | None = None
    for strategy in _capture_strategies.CAPTURE_STRATEGIES:
        result = strategy(verbose=False)(subject.model, args, kwargs, dynamic_shapes=export_shapes)
        if result.exported_program is not None:
            return result.exported_program, shapes if need_names and shapes is not None else None
        first = first or result.exception
    assert first is not None
    raise first
