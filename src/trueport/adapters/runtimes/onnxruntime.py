"""ONNX Runtime as users run it: all graph optimizations, the provider and the threads they ask for."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
from numpy.typing import NDArray

from trueport.adapters.float64.replay.rounding import Budget
from trueport.adapters.runtimes._packed import from_storage, nbytes, to_storage
from trueport.adapters.runtimes._probe import lacking
from trueport.adapters.runtimes.onnxruntime_budgets import BUDGETS
from trueport.adapters.runtimes.onnxruntime_transformers import TransformerSwitches, transformers
from trueport.core.errors import UsageError

Array = NDArray[Any]

FATAL_ONLY = 4
_LEVELS = {
    "disabled": ort.GraphOptimizationLevel.ORT_DISABLE_ALL,
    "basic": ort.GraphOptimizationLevel.ORT_ENABLE_BASIC,
    "extended": ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED,
    "all": ort.GraphOptimizationLevel.ORT_ENABLE_ALL,
}
_NOT_IMPLEMENTED = ("NotImplemented",)


class OnnxRuntime:
    """Loads files into sessions.

    Args:
        provider: execution provider, `CPUExecutionProvider` when None.
        threads: intra-operator threads.
    """

    name = "onnxruntime"
    levels = tuple(_LEVELS)

    def __init__(self, *, provider: str | None = None, threads: int = 1) -> None:
        available = ort.get_available_providers()
        self.provider = provider or "CPUExecutionProvider"
        if self.provider not in available:
            raise UsageError(f"onnxruntime has no provider '{self.provider}' here; it has: {', '.join(available)}")
        self.threads = threads
        self._refused: tuple[BaseException, Path] | None = None

    def load(self, path: Path, *, level: str | None = None) -> OnnxRuntimeSession:
        """Returns a session on the file at one of `levels`, as users run it where none is given.

        The file is handed over by its path: a model of more than 2 GB cannot be handed over otherwise.
        """
        try:
            return OnnxRuntimeSession(self._session(str(path), level))
        except Exception as error:
            self._refused = (error, path)
            raise

    def lacks_kernel(self, error: BaseException) -> str | None:
        """Returns the operator that has no kernel where that is why the file was refused, else None.

        Where the file was refused, each of its nodes is tried alone. Later, only an error of the class
        `NotImplemented` says so, and which operator it was is then not known.
        """
        by_class = "an operator" if type(error).__name__ in _NOT_IMPLEMENTED else None
        if self._refused is None or self._refused[0] is not error:
            return by_class
        return lacking(self._refused[1], self._refuses) or by_class

    @property
    def budgets(self) -> Mapping[str, Budget]:
        """What its CPU kernels may be off by, as measured."""
        return BUDGETS

    def switches(self, path: Path, level: str | None = None) -> TransformerSwitches:
        """Returns the graph transformers that act on the file at this level, to be switched off by name."""

        def load(off: frozenset[str], written: Path | None) -> Callable[[Mapping[str, Any]], list[Any]]:
            return OnnxRuntimeSession(self._session(str(path), level, off=off, written=written)).run

        library = Path(ort.capi.onnxruntime_pybind11_state.__file__)
        return TransformerSwitches(transformers(library, [self.provider]), load)

    def versions(self) -> dict[str, str]:
        """Returns the version of onnxruntime."""
        return {"onnxruntime": ort.__version__}

    def _session(
        self,
        model: str | bytes,
        level: str | None,
        *,
        off: frozenset[str] = frozenset(),
        written: Path | None = None,
    ) -> Any:
        ort.set_default_logger_severity(FATAL_ONLY)
        options = ort.SessionOptions()
        options.log_severity_level = FATAL_ONLY
        options.intra_op_num_threads = self.threads
        options.inter_op_num_threads = 1
        if level is not None:
            options.graph_optimization_level = _LEVELS[level]
        if written is not None:
            options.optimized_model_filepath = str(written)
        disabled = {"disabled_optimizers": sorted(off)} if off else {}
        return ort.InferenceSession(model, options, providers=[self.provider], **disabled)

    def _refuses(self, model: onnx.ModelProto) -> bool:
        try:
            self._session(model.SerializeToString(), "disabled")
        except Exception:  # noqa: BLE001 - that it raises is the answer
            return True
        return False


class OnnxRuntimeSession:
    """One loaded file."""

    def __init__(self, session: Any) -> None:
        self._session = session
        self._types = {value.name: value.type for value in (*session.get_inputs(), *session.get_outputs())}
        self._outputs = [value.name for value in session.get_outputs()]

    def run(self, feeds: Mapping[str, Any]) -> list[Any]:
        """Returns the outputs in the model's own types: arrays, lists of arrays, None for an absent optional.

        Args:
            feeds: arrays by name; a list of arrays for a sequence, None for an absent optional. Types that NumPy does
                not have are those of `ml_dtypes`.
        """
        given = {name: _contiguous(value) for name, value in feeds.items()}
        odd = {name for name in (*given, *self._outputs) if _odd(self._types.get(name, ""))}
        if not odd:
            outputs: list[Any] = self._session.run(None, given)
            return outputs
        values = {name: self._wrapped(name, value) for name, value in given.items()}
        found = self._session.run_with_ort_values(None, values)
        return [_unwrapped(value, self._types[name]) for name, value in zip(self._outputs, found, strict=True)]

    def _wrapped(self, name: str, value: Any) -> Any:
        """An input as a value of the runtime; in a model with odd types all of them are handed over so."""
        if not isinstance(value, np.ndarray):
            raise TypeError(
                f"input '{name}': onnxruntime cannot take a {type(value).__name__} beside a value of a type that NumPy "
                f"does not have ({', '.join(sorted({t for t in self._types.values() if _odd(t)}))})"
            )
        element = _element(self._types.get(name, ""))
        if element in _ODD:
            made = ort.OrtValue.ortvalue_from_shape_and_type(list(value.shape), _ODD[element])
            stored = np.ascontiguousarray(to_storage(value))
            ctypes.memmove(made.data_ptr(), stored.ctypes.data, stored.nbytes)
            return made
        return ort.OrtValue.ortvalue_from_numpy(value)


_ODD = {
    "bfloat16": onnx.TensorProto.BFLOAT16,
    "float8e4m3fn": onnx.TensorProto.FLOAT8E4M3FN,
    "float8e4m3fnuz": onnx.TensorProto.FLOAT8E4M3FNUZ,
    "float8e5m2": onnx.TensorProto.FLOAT8E5M2,
    "float8e5m2fnuz": onnx.TensorProto.FLOAT8E5M2FNUZ,
    "float8e8m0": onnx.TensorProto.FLOAT8E8M0,
    "int4": onnx.TensorProto.INT4,
    "uint4": onnx.TensorProto.UINT4,
    "float4e2m1": onnx.TensorProto.FLOAT4E2M1,
    "int2": onnx.TensorProto.INT2,
    "uint2": onnx.TensorProto.UINT2,
}
"""ONNX Runtime's names of types that NumPy does not have, and ONNX's numbers of them."""


def _element(declared: str) -> str:
    return declared.removeprefix("tensor(").removesuffix(")")


def _odd(declared: str) -> bool:
    return _element(declared) in _ODD


def _contiguous(value: Any) -> Any:
    if value is None:
        return None
    if isinstance(value, (list, tuple)):
        return [_contiguous(v) for v in value]
    return np.ascontiguousarray(value).reshape(np.shape(value))


def _unwrapped(value: Any, declared: str) -> Any:
    element = _element(declared)
    if element not in _ODD:
        return value.numpy()
    shape = tuple(value.shape())
    size = nbytes(onnx.helper.tensor_dtype_to_np_dtype(_ODD[element]), int(np.prod(shape, dtype=np.int64)))
    raw = np.frombuffer(ctypes.string_at(value.data_ptr(), size), np.uint8) if size else np.zeros(0, np.uint8)
    return from_storage(raw, _ODD[element], shape)
