"""A file run with its intermediate values as outputs: few sessions with many outputs each, never one for each node.

An output more may change what a runtime does, so it is asked to optimize nothing, and what the instrumented file gives
at the outputs of the model is compared with what the plain one gives.
"""

from __future__ import annotations

import math
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from trueport.adapters.float64.onnx import Float64Evaluator
from trueport.adapters.float64.onnx.locally import LocalStep
from trueport.adapters.protocols import Runtime
from trueport.onnxgraph.external import files_of
from trueport.onnxgraph.nodes import random_operators
from trueport.onnxgraph.shapes import known_dims

Array = NDArray[Any]

LIMIT_BYTES = 2**30
"""What the values of one session may take together."""
_ITEM_BYTES = 8


class Observation:
    """One file on one set of inputs, with all values of its main graph.

    Args:
        model: with its weights inside, to be evaluated in float64.
        path: of the same model as the runtime loads it.
        feeds: inputs by name.
        runtime: that runs it.
        level: of its optimizations, the least where None.
        limit_bytes: how much the values that one session gives may take; values whose sizes are not known before count
            as the largest one that is.
        seed: of the noise.

    Attributes:
        plain: outputs of the plain file at the same level.
        outputs: outputs of the instrumented file.
        sessions: with intermediate values, so far.
    """

    def __init__(
        self,
        model: onnx.ModelProto,
        path: Path,
        feeds: Mapping[str, Any],
        runtime: Runtime,
        *,
        level: str | None = None,
        limit_bytes: int = LIMIT_BYTES,
        seed: int = 0,
    ) -> None:
        self._model, self._path, self._feeds, self._runtime, self._seed = model, path, feeds, runtime, seed
        self._level = level or runtime.levels[0]
        self._limit_bytes = limit_bytes
        self.plain: list[Any] = runtime.load(path, level=self._level).run(feeds)
        self.outputs: list[Any] | None = None
        self.sessions = 0

    @property
    def unchanged(self) -> bool:
        """Whether the values that are now outputs left the outputs of the model as they were, bit for bit."""
        if self.outputs is None or len(self.outputs) != len(self.plain):
            return False
        return all(_identical(a, b) for a, b in zip(self.plain, self.outputs, strict=True))

    def steps(self) -> Iterator[LocalStep]:
        """Yields every node of the main graph, evaluated in float64 on the runtime's own values.

        Raises:
            Exception: whatever the runtime raises at an instrumented file.
        """
        evaluator = Float64Evaluator(self._model)
        with TemporaryDirectory(prefix="trueport-observed-") as folder:
            bare = onnx.load(str(self._path), load_external_data=False)
            _beside(bare, self._path, Path(folder))
            batches = self._batches(bare)
            values: dict[str, Any] = {}

            def take(names: tuple[str, ...]) -> list[Any]:
                while not set(names) <= set(values):
                    values.clear()
                    values.update(self._run(bare, next(batches), Path(folder)))
                return [values[name] for name in names]

            random = frozenset(random_operators(self._model))
            budgets = self._runtime.budgets
            yield from evaluator.locally(self._feeds, take, random=random, budgets=budgets, seed=self._seed)
        if self.outputs is None:  # there was no node, so there is nothing to show
            self.outputs = list(self.plain)

    def _batches(self, model: onnx.ModelProto) -> Iterator[list[str]]:
        """Yields names of values in the order of the nodes, the outputs of one node together."""
        sizes = _sizes(model, self._feeds)
        unknown = max(sizes.values(), default=_ITEM_BYTES)
        # Another run would draw other numbers.
        limit = math.inf if random_operators(model) else self._limit_bytes
        batch: list[str] = []
        held = 0
        for node in model.graph.node:
            names = [name for name in node.output if name]
            size = sum(sizes.get(name, unknown) for name in names)
            if batch and held + size > limit:
                yield batch
                batch, held = [], 0
            batch += names
            held += size
        yield batch

    def _run(self, model: onnx.ModelProto, names: Sequence[str], folder: Path) -> dict[str, Any]:
        declared = [value.name for value in model.graph.output]
        extra = [name for name in names if name not in set(declared)]
        model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in extra)
        path = folder / "observed.onnx"
        try:
            onnx.save(model, str(path))
        finally:
            del model.graph.output[len(declared) :]
        found = self._runtime.load(path, level=self._level).run(self._feeds)
        self.sessions += 1
        if self.outputs is None:
            self.outputs = list(found[: len(declared)])
        return dict(zip([*declared, *extra], found, strict=True))


def _beside(model: onnx.ModelProto, path: Path, folder: Path) -> None:
    """Puts the external data of a model into another folder, without copying it where that can be spared."""
    for file in files_of(model, path):
        target = folder / file
        target.parent.mkdir(parents=True, exist_ok=True)
        with suppress(OSError):
            os.link((path.parent / file).resolve(), target)
            continue
        shutil.copyfile(path.parent / file, target)


def _sizes(model: onnx.ModelProto, feeds: Mapping[str, Any]) -> dict[str, int]:
    """Returns the bytes of the values whose sizes are known when the inputs are."""
    dims = known_dims(model)
    symbols: dict[str, int] = {}
    for name, value in feeds.items():
        if isinstance(value, np.ndarray):
            symbols.update({d: n for d, n in zip(dims.get(name, ()), value.shape, strict=False) if isinstance(d, str)})
    sizes = {}
    for name, shape in dims.items():
        bound = [symbols.get(d) if isinstance(d, str) else d for d in shape]
        known = [d for d in bound if d is not None]
        if len(known) == len(bound):
            sizes[name] = math.prod(known) * _ITEM_BYTES
    made = {name for node in model.graph.node for name in node.output}
    return {name: size for name, size in sizes.items() if name in made}


def _identical(a: Any, b: Any) -> bool:
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(_identical(x, y) for x, y in zip(a, b, strict=True))
    if a is None or b is None:
        return a is b
    x, y = np.asarray(a), np.asarray(b)
    if x.dtype != y.dtype or x.shape != y.shape:
        return False
    return bool(np.array_equal(x, y)) if x.dtype.kind in "OUS" else x.tobytes() == y.tobytes()
