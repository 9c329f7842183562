"""What stands in for the float64 evaluation of an ONNX source that has operators without a float64 kernel.

A runtime with its own optimizations off computes the outputs in the model's own types; noise of a few last places
enters at the inputs and the weights. This shows what optimizers and the runtime's own optimizations change, and nothing
of what the stand-in itself computes wrongly.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper

from trueport.adapters.float64.replay.flat import flat, flat_names
from trueport.adapters.float64.replay.source import ReplayedReference
from trueport.adapters.protocols import Session
from trueport.core.errors import SourceError
from trueport.core.subject import Subject
from trueport.oracle.compare import ReferenceOutput
from trueport.oracle.floor import elementwise_floor
from trueport.oracle.noise import Draws
from trueport.oracle.units import FLOAT_TYPES

Array = NDArray[Any]

RUNTIME = "onnxruntime"
LEVEL = "disabled"
PLACES = 8.0
"""By how many last places inputs and weights are moved, because the rounding of the operators between is not known."""
MOST_BYTES = 1 << 30
"""Above this size the weights stay as they are: a model with all weights as inputs would have to be written anew."""


class StandIn:
    """A runtime in the place of the float64 evaluation.

    Args:
        subject: of framework `onnx`.
        seed: of the noise.
        missing: the operators without a kernel, for messages.

    Raises:
        SourceError: the runtime cannot load the model either.
    """

    name = RUNTIME

    def __init__(self, subject: Subject, seed: int, missing: tuple[str, ...]) -> None:
        self._seed = seed
        self._weights = _float_weights(subject.model)
        self._names = [o.name for o in subject.model.graph.output]
        try:
            self._session = _session(subject, self._weights)
        except Exception as error:
            raise SourceError(
                f"there is no float64 kernel for {', '.join(missing)}, and {RUNTIME}, which would stand in, does not "
                f"load the model: {error}"
            ) from error

    def reference(self, feeds: Mapping[str, Any], number: int, draws: Draws) -> ReplayedReference:
        """Returns the outputs of the stand-in with the floors that noise at inputs and weights gives."""
        real = self.real(feeds)
        main = [_wide(value) for value in real]
        runs = []
        for k in range(draws.total):
            rng = np.random.default_rng([self._seed, number, draws.total, k])
            moved = {name: _moved(value, rng, coherent=k % 2 == 1) for name, value in feeds.items()}
            weights = {name: _moved(value, rng, coherent=k % 2 == 1) for name, value in self._weights.items()}
            runs.append([_wide(value) for value in self._run(moved, weights)])
        names = flat_names(self._names, real) if len(self._names) == len(real) else [str(i) for i in range(len(real))]
        outputs = []
        for i, value in enumerate(main):
            column = [run[i] for run in runs if len(run) == len(main) and run[i].shape == value.shape]
            floor = np.zeros(value.shape)
            unstable = np.zeros(value.shape, bool)
            if value.dtype.kind == "f" and len(column) == len(runs):
                floor = elementwise_floor(value, column)
            elif value.dtype.kind != "f":
                for run in column:
                    unstable |= np.asarray(run != value)
            outputs.append(ReferenceOutput(names[i], real[i].dtype.name, value, floor, floor, unstable, draws.total))
        return ReplayedReference(tuple(outputs), real, False)

    def real(self, feeds: Mapping[str, Any]) -> tuple[Array, ...]:
        """Returns the outputs of the stand-in in their own types."""
        return tuple(self._run(feeds, self._weights))

    def _run(self, feeds: Mapping[str, Any], weights: Mapping[str, Array]) -> list[Array]:
        try:
            return flat(self._session.run({**feeds, **weights}))
        except Exception as error:
            raise SourceError(f"{type(error).__name__}: {error}") from error


def _session(subject: Subject, weights: Mapping[str, Array]) -> Session:
    """Returns a session on the model with its weights as inputs, so that they can be moved."""
    from trueport.adapters.runtimes import runtime

    engine = runtime(RUNTIME)
    if not weights and subject.path is not None:
        return engine.load(subject.path, level=LEVEL)
    model = onnx.ModelProto()
    model.CopyFrom(subject.model)
    declared = {i.name for i in model.graph.input}
    for tensor in model.graph.initializer:
        if tensor.name in weights and tensor.name not in declared:
            model.graph.input.append(onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims))
    with tempfile.TemporaryDirectory(prefix="trueport-stand-in-") as folder:
        path = Path(folder) / "model.onnx"
        onnx.save(model, str(path))
        return engine.load(path, level=LEVEL)


def _float_weights(model: onnx.ModelProto) -> dict[str, Array]:
    """Returns the floating-point initializers that no declared input overrides; none of a very large model."""
    declared = {i.name for i in model.graph.input}
    if model.ByteSize() > MOST_BYTES or model.ir_version < 4:
        return {}
    found = {}
    for tensor in model.graph.initializer:
        if tensor.data_type in (onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE) and tensor.name not in declared:
            with contextlib.suppress(Exception):
                found[tensor.name] = numpy_helper.to_array(tensor)
    return found


def _wide(value: Array) -> Array:
    return value.astype(np.float64) if value.dtype.name in FLOAT_TYPES and value.dtype.kind != "c" else value


def _moved(value: Any, rng: np.random.Generator, *, coherent: bool) -> Any:
    if not isinstance(value, np.ndarray) or value.dtype.kind != "f":
        return value
    size = PLACES * FLOAT_TYPES[value.dtype.name].unit_roundoff
    noise = (1.0 if rng.integers(2) else -1.0) if coherent else rng.standard_normal(value.shape)
    with np.errstate(all="ignore"):
        return np.asarray(value * (1 + size * noise)).astype(value.dtype)
