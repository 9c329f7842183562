"""OpenVINO on the CPU, pinned to float32 arithmetic: nothing is computed in a narrower type than the file says.

Its Python package counts uses over the network where a second package is installed; that package is kept out.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from trueport.adapters.float64.replay.rounding import Budget
from trueport.adapters.runtimes._packed import from_storage, to_storage
from trueport.adapters.runtimes._probe import lacking
from trueport.adapters.runtimes.openvino_budgets import BUDGETS
from trueport.core.errors import UsageError
from trueport.core.versions import package_versions
from trueport.onnxgraph.interface import Form, ValueInfo, read_interface

Array = NDArray[Any]

_TELEMETRY = "openvino_telemetry"


@contextmanager
def _without_telemetry() -> Iterator[None]:
    """Makes the package that sends numbers of uses unimportable, so that OpenVINO takes its own empty one."""
    absent = _TELEMETRY not in sys.modules
    if absent:
        sys.modules[_TELEMETRY] = None  # type: ignore[assignment]  # the import system's own way to say: not there
    try:
        yield
    finally:
        if absent:
            del sys.modules[_TELEMETRY]


with _without_telemetry():
    import openvino
    from openvino.frontend import FrontEndManager


class UnsupportedValueError(Exception):
    """A value that OpenVINO does not take or give as it is; said before it is lost.

    Attributes:
        what: the kind of value.
    """

    def __init__(self, what: str, name: str) -> None:
        super().__init__(f"OpenVINO takes and gives only tensors of numbers, got {what} for '{name}'")
        self.what = what


class OpenVino:
    """Loads files into compiled models.

    Args:
        provider: `CPU` or None; other devices are not pinned to float32 here.
        threads: of inference.
    """

    name = "openvino"
    levels = ("all",)

    def __init__(self, *, provider: str | None = None, threads: int = 1) -> None:
        if provider not in (None, "CPU", "CPUExecutionProvider"):
            raise UsageError(f"openvino has no provider '{provider}' here; it has: CPU")
        self._core = openvino.Core()
        self._front = FrontEndManager().load_by_framework("onnx")
        self._refused: tuple[BaseException, Path] | None = None
        self._settings = {
            "INFERENCE_PRECISION_HINT": "f32",
            "EXECUTION_MODE_HINT": "ACCURACY",
            "INFERENCE_NUM_THREADS": threads,
            "NUM_STREAMS": 1,
            "ENABLE_CPU_PINNING": False,
            "DYNAMIC_QUANTIZATION_GROUP_SIZE": 0,
            "KV_CACHE_PRECISION": "f32",
            "CACHE_DIR": "",
        }

    def load(self, path: Path, *, level: str | None = None) -> OpenVinoSession:
        """Returns the compiled model; it always optimizes.

        Raises:
            UnsupportedValueError: an input or output is a text, a sequence or an optional, or has no type.
        """
        del level
        try:
            interface = read_interface(onnx.load(str(path), load_external_data=False))
            for value in (*interface.inputs, *interface.outputs):
                _require_numbers(value)
            names = [[v.name for v in values] for values in (interface.inputs, interface.outputs)]
            return OpenVinoSession(self._compiled(path), *names)
        except Exception as error:
            self._refused = (error, path)
            raise

    def switches(self, path: Path, level: str | None = None) -> None:
        """Returns nothing: it has no parts that could be switched off."""
        del path, level

    def lacks_kernel(self, error: BaseException) -> str | None:
        """Returns the operator that OpenVINO lacks where that is why it refused the file, else None.

        Each node of a file that was refused is tried alone.
        """
        if isinstance(error, UnsupportedValueError):
            return error.what
        if self._refused is None or self._refused[0] is not error:
            return None
        return lacking(self._refused[1], self._refuses)

    @property
    def budgets(self) -> Mapping[str, Budget]:
        """What its CPU kernels may be off by, as measured."""
        return BUDGETS

    def versions(self) -> dict[str, str]:
        """Returns the version of openvino."""
        return package_versions("openvino")

    def _compiled(self, path: Path) -> Any:
        return self._core.compile_model(self._front.convert(self._front.load(str(path))), "CPU", self._settings)

    def _refuses(self, model: onnx.ModelProto) -> bool:
        import tempfile

        with tempfile.TemporaryDirectory(prefix="trueport-probe-") as folder:
            path = Path(folder) / "model.onnx"
            onnx.save(model, str(path))
            try:
                self._compiled(path)
            except Exception:  # noqa: BLE001 - that it raises is the answer
                return True
            return False


class OpenVinoSession:
    """One compiled model."""

    def __init__(self, compiled: Any, inputs: list[str], outputs: list[str]) -> None:
        self._compiled = compiled
        self._request = compiled.create_infer_request()
        self._inputs = _by_name(compiled.inputs, inputs)
        ports = {name: number for number, port in enumerate(compiled.outputs) for name in port.get_names()}
        in_order = len(compiled.outputs) == len(outputs)
        self._outputs = [ports.get(name, number if in_order else None) for number, name in enumerate(outputs)]
        missing = [name for name, number in zip(outputs, self._outputs, strict=True) if number is None]
        if missing:
            raise RuntimeError(f"OpenVINO's model has no output {', '.join(missing)}")

    def run(self, feeds: Mapping[str, Any]) -> list[Array]:
        """Returns the outputs in the declared order and types; inputs that OpenVINO removed are not handed over.

        Raises:
            ValueError: an input of the compiled model is not among the feeds, so it would compute on anything.
            UnsupportedValueError: a value is no array of numbers.
        """
        unfed = sorted(set(self._inputs) - set(feeds))
        if unfed:
            raise ValueError(f"expected the inputs {', '.join(self._inputs)}, got none for {', '.join(unfed)}")
        kept = []  # an output may share the memory of an input
        for name, value in feeds.items():
            port = self._inputs.get(name)
            if port is None:
                continue
            if not isinstance(value, np.ndarray):
                raise UnsupportedValueError(type(value).__name__, name)
            kept.append(_tensor(np.array(value, order="C", copy=True), name))
            self._request.set_tensor(port, kept[-1])
        self._request.infer()
        outputs = [_array(self._request.get_output_tensor(number)) for number in self._outputs]
        del kept
        return outputs


_TYPES = {
    "bf16": onnx.TensorProto.BFLOAT16,
    "f8e4m3": onnx.TensorProto.FLOAT8E4M3FN,
    "f8e5m2": onnx.TensorProto.FLOAT8E5M2,
    "i4": onnx.TensorProto.INT4,
    "u4": onnx.TensorProto.UINT4,
    "f4e2m1": onnx.TensorProto.FLOAT4E2M1,
    "f8e8m0": onnx.TensorProto.FLOAT8E8M0,
    "u2": onnx.TensorProto.UINT2,
}
"""OpenVINO's names of types that NumPy does not have, and ONNX's numbers of them."""
_NAMES = {onnx.helper.tensor_dtype_to_np_dtype(number).name: name for name, number in _TYPES.items()}


def _by_name(ports: Any, declared: list[str]) -> dict[str, Any]:
    """Inputs by their declared names.

    An input that is handed on as an output gets that one's name; such inputs are paired in order with the declared ones
    that are left, if they are as many, and keep the foreign name, for which nothing is ever fed, if they are not.
    """
    found = {name: port for port in ports for name in port.get_names() if name in declared}
    renamed = [port for port in ports if not set(port.get_names()) & set(found)]
    left = [name for name in declared if name not in found]
    if len(renamed) != len(left):
        left = [port.get_any_name() for port in renamed]
    return {**found, **dict(zip(left, renamed, strict=True))}


def _require_numbers(value: ValueInfo) -> None:
    if value.form is not Form.TENSOR:
        raise UnsupportedValueError(f"a value of kind {value.form}", value.name)
    if value.dtype in ("object", "str", "StringDType"):
        raise UnsupportedValueError("texts", value.name)


def _tensor(array: Array, name: str) -> Any:
    if array.dtype.kind in "OUST":
        raise UnsupportedValueError("texts", name)
    own = _NAMES.get(array.dtype.name)
    if own is None:
        return openvino.Tensor(array, shared_memory=False)
    return openvino.Tensor(to_storage(array), list(array.shape), getattr(openvino.Type, own))


def _array(tensor: Any) -> Array:
    number = _TYPES.get(tensor.element_type.to_string())
    data = np.array(tensor.data, copy=True)
    if number is not None:
        raw = data.view(np.uint16) if number == onnx.TensorProto.BFLOAT16 else data.view(np.uint8)
        return from_storage(raw, number, tuple(tensor.shape))
    if tensor.element_type == openvino.Type.boolean:
        return data.astype(np.bool_)
    return data
