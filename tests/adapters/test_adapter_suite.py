"""Our own adapters are certified with what third parties certify theirs with, and the suite sees what is wrong."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from trueport.adapters.converters import converter
from trueport.adapters.converters.onnxoptimizer import OnnxOptimizer
from trueport.adapters.protocols import Checkpoint, Converter, ConverterOptions, Runtime
from trueport.adapters.runtimes.onnx_reference import OnnxReference, OnnxReferenceSession
from trueport.core.errors import UsageError
from trueport.core.subject import Subject
from trueport.core.taxonomy import Stage
from trueport.testing import adapter_suite
from trueport.testing.subjects import onnx_subjects

ONNX_TO_ONNX = ("onnxscript-optimizer", "onnxsim", "onnxslim", "onnxoptimizer", "onnx-version-converter")


@pytest.mark.slow
@pytest.mark.parametrize("name", [*ONNX_TO_ONNX, "cmd:cp {in} {out}"])
def test_our_converters_of_onnx_are_certified(name: str) -> None:
    adapter_suite.certify_converter(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["torch-dynamo", "torch-script"])
def test_our_converters_of_torch_are_certified(name: str) -> None:
    import torch

    from trueport.adapters.sources import subject_from_object

    torch.manual_seed(0)
    network = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3)).eval()
    adapter_suite.certify_converter(name, subjects=[subject_from_object(network, (torch.randn(2, 4),))])


@pytest.mark.parametrize("name", ["onnxruntime", "onnx-reference", "openvino"])
def test_our_runtimes_are_certified(name: str) -> None:
    adapter_suite.certify_runtime(name)


class TestOnnxSlimAsAClass(adapter_suite.ConverterSuite):
    def make(self) -> Converter:
        return converter("onnxslim")

    def subjects(self) -> list[Subject]:
        return onnx_subjects()[:1]


class TestReferenceAsAClass(adapter_suite.RuntimeSuite):
    def make(self) -> Runtime:
        return OnnxReference()


class ChangesTheModel(OnnxOptimizer):
    def convert(self, subject: Subject, options: ConverterOptions) -> Iterator[Checkpoint]:
        subject.model.producer_name += "x"
        return super().convert(subject, options)


class SkipsACheckpoint(OnnxOptimizer):
    def convert(self, subject: Subject, options: ConverterOptions) -> Iterator[Checkpoint]:
        checkpoints = super().convert(subject, options)
        return (c for number, c in enumerate(checkpoints) if number != 1)


class WritesElsewhere(OnnxOptimizer):
    def convert(self, subject: Subject, options: ConverterOptions) -> Iterator[Checkpoint]:
        elsewhere = Path(options.folder).parent / f"{options.folder.name}-elsewhere"
        elsewhere.mkdir(exist_ok=True)
        return super().convert(subject, ConverterOptions(elsewhere, options.opset, options.input_names))


class WrongResult(OnnxOptimizer):
    def optimize(self, model: onnx.ModelProto, target_opset: int | None) -> onnx.ModelProto:
        result = super().optimize(model, target_opset)
        for tensor in result.graph.initializer:
            values = onnx.numpy_helper.to_array(tensor)
            tensor.CopyFrom(onnx.numpy_helper.from_array(values * np.float32(1.01), tensor.name))
        return result


@pytest.mark.slow
@pytest.mark.parametrize(
    ("made", "check"),
    [
        (ChangesTheModel, "leaves the model as it is"),
        (SkipsACheckpoint, "follows its plan"),
        (WritesElsewhere, "follows its plan"),
        (WrongResult, "a right model is faithful"),
    ],
)
def test_a_wrong_converter_is_found_out(made: type[OnnxOptimizer], check: str) -> None:
    report = adapter_suite.converter_report(made, subjects=onnx_subjects()[:1])
    assert any(o.name.startswith(check) for o in report.failed), report.failed
    with pytest.raises(adapter_suite.AdapterError, match=check):
        report.require()


class WrongSession(OnnxReferenceSession):
    def run(self, feeds: Mapping[str, Any]) -> list[Any]:
        return [np.asarray(o, np.float32) if o.dtype == np.float64 else o for o in super().run(feeds)][::-1]


class WrongRuntime(OnnxReference):
    def load(self, path: Path, *, level: str | None = None) -> OnnxReferenceSession:
        del level
        session = OnnxReference().load(path)
        return WrongSession(session._evaluator)

    def lacks_kernel(self, error: BaseException) -> str | None:
        return "everything"


def test_a_wrong_runtime_is_found_out() -> None:
    failed = {o.name for o in adapter_suite.runtime_report(WrongRuntime).failed}
    wanted = {
        "computes [several-outputs]",
        "computes [float64]",
        "refuses broken files",
        "says which operator it lacks",
    }
    assert failed == wanted


@pytest.mark.slow
def test_a_tool_that_raises_is_certified_by_the_stage_in_which_it_does() -> None:
    class Raises(OnnxOptimizer):
        def optimize(self, model: onnx.ModelProto, target_opset: int | None) -> onnx.ModelProto:
            if len(model.graph.input) == 1 and model.graph.name == "convolution":
                raise RuntimeError("it cannot do that")
            return super().optimize(model, target_opset)

    right, broken = onnx_subjects()
    adapter_suite.certify_converter(Raises, subjects=[right], crashing={Stage.OPTIMIZATION: broken})


def test_a_converter_of_another_framework_needs_subjects() -> None:
    with pytest.raises(UsageError, match="pass `subjects`"):
        adapter_suite.certify_converter("torch-dynamo")
