"""What all tools have in common that make an ONNX model of an ONNX model.

A tool is called exactly as its users call it, with its defaults. Where its passes can also be run one by one, they are,
so that the pass that breaks a model can be named; but only a sequence that ends in the very model of the plain call
counts, and the last optimization checkpoint always is the model of the plain call.
"""

from __future__ import annotations

import contextlib
import io
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import Any

import onnx

from trueport.adapters.converters._onnx_checkpoint import file_checkpoint, model_checkpoint
from trueport.adapters.protocols import Checkpoint, ConverterOptions, Executed, Switches
from trueport.core.errors import UsageError
from trueport.core.result import NodeRef
from trueport.core.subject import Subject
from trueport.core.taxonomy import Stage
from trueport.core.versions import package_versions
from trueport.onnxgraph.contents import size_bytes
from trueport.onnxgraph.nesting import tensors

LOADED = "model as loaded"
OPTIMIZED = "model after all passes"
READ_BACK = "file read back"

LARGEST_MESSAGE_BYTES = 2**31 - 2**24
"""A protobuf message has less than 2 GB; beyond this the weights go to a file of their own."""
PASS_BY_PASS_BYTES = 16 * 2**20
"""Up to this size the passes are run one by one: every one of them writes and reads the whole model."""
_SHARED_OPTIONS = frozenset({"target_opset"})


class OnnxToOnnx(ABC):
    """A tool that takes a `ModelProto` and returns another one.

    Attributes:
        name: as users write it.
        packages: whose versions decide the result.
        passes: names of the optimization checkpoints before the last, in the order of `steps`.
        optimized: name of the last optimization checkpoint.
        options: names of `export_options` that the tool looks at.
        plan: of the subject that `convert` was last called with; of a small one before.
    """

    name: str
    packages: tuple[str, ...] = ()
    passes: tuple[str, ...] = ()
    optimized: str = OPTIMIZED
    options: frozenset[str] = frozenset()
    frameworks = frozenset({"onnx"})

    def __init__(self) -> None:
        self.plan: tuple[tuple[Stage, str], ...] = self._planned(self.passes)

    @abstractmethod
    def optimize(self, model: onnx.ModelProto, target_opset: int | None) -> onnx.ModelProto:
        """Returns what the tool makes of a model of our own, called as its users call it."""

    def load(self, model: onnx.ModelProto) -> onnx.ModelProto:
        """Returns the model as the tool itself reads it; tools that work on protos take it as it is."""
        return model

    def steps(self, model: onnx.ModelProto) -> Iterator[onnx.ModelProto]:
        """Yields the model after each of `passes`; the last one equals `optimize` or none of them counts."""
        del model
        yield from ()

    def switches(self, model: onnx.ModelProto, options: ConverterOptions) -> Switches | None:
        """Returns the tool's parts that can be switched off, for one model; None where it has none."""
        del model, options
        return None

    def requested_opset(self, options: ConverterOptions, wanted: Any) -> int | None:
        """Returns the opset that the file is to have, for tools that convert it; others keep the source's."""
        del wanted
        return options.opset

    def convert(self, subject: Subject, options: ConverterOptions) -> Iterator[Checkpoint]:
        """Yields the checkpoints of `plan`, which a large model makes shorter.

        The subject's model is never handed to the tool; it works on a copy.

        Raises:
            UsageError: the subject has `export_options` that mean nothing here.
        """
        unknown = sorted(set(subject.export_options) - self.options - _SHARED_OPTIONS)
        if unknown:
            raise UsageError(
                f"export_options: {', '.join(unknown)} cannot be passed to {self.name}; "
                f"it takes {', '.join(sorted(self.options | _SHARED_OPTIONS))}"
            )
        passes = self.passes if weight_bytes(subject.model) <= PASS_BY_PASS_BYTES else ()
        self.plan = self._planned(passes)
        return self._checkpoints(subject, options, passes)

    def blame(self, error: BaseException) -> tuple[NodeRef, ...]:
        """Returns the node that the tool was at, where it is written in Python and keeps it in a variable."""
        return blame(error)

    def versions(self) -> dict[str, str]:
        """Returns the versions of the tool's packages and of onnx."""
        return package_versions(*self.packages, "onnx")

    def _planned(self, passes: tuple[str, ...]) -> tuple[tuple[Stage, str], ...]:
        middle = tuple((Stage.OPTIMIZATION, name) for name in (*passes, self.optimized))
        return ((Stage.LOAD_MODEL, LOADED), *middle, (Stage.EXPORT, READ_BACK))

    def _checkpoints(
        self, subject: Subject, options: ConverterOptions, passes: tuple[str, ...]
    ) -> Iterator[Checkpoint]:
        wanted = self.requested_opset(options, subject.export_options.get("target_opset"))
        facts = {} if wanted is None else {"opset_requested": wanted}
        with silenced():
            loaded = self.load(copied(subject.model))
        yield model_checkpoint(Stage.LOAD_MODEL, LOADED, loaded, options)
        try:
            with silenced():
                optimized = self.optimize(copied(subject.model), wanted)
                _require_model(self.name, optimized)
        except Exception:
            yield from self._until_it_raises(subject.model, options, passes)
            raise
        with silenced():
            between = self._between(subject.model, optimized, passes)
        for name, model in between:
            yield model_checkpoint(Stage.OPTIMIZATION, name, model, options)
        yield model_checkpoint(Stage.OPTIMIZATION, self.optimized, optimized, options, facts)
        path = options.folder / "model.onnx"
        save(optimized, path)
        yield file_checkpoint(READ_BACK, path, options, facts)

    def _until_it_raises(
        self, model: onnx.ModelProto, options: ConverterOptions, passes: tuple[str, ...]
    ) -> Iterator[Checkpoint]:
        """The passes one by one where the plain call raised: the one that raises alone too is the one due then."""
        if passes:
            steps = self.steps(copied(model))
            for name in passes:
                with silenced():
                    after = next(steps)
                yield model_checkpoint(Stage.OPTIMIZATION, name, after, options)

    def _between(
        self, model: onnx.ModelProto, optimized: onnx.ModelProto, passes: tuple[str, ...]
    ) -> list[tuple[str, onnx.ModelProto]]:
        """The model after each pass; `optimized` for each where the passes one by one do not lead there."""
        if not passes:
            return []
        try:
            steps = list(self.steps(copied(model)))
        except Exception:  # noqa: BLE001 - the plain call went well, and that is what users see
            steps = []
        same = len(steps) == len(passes) and serialized(steps[-1]) == serialized(optimized)
        if same:
            return list(zip(passes, steps, strict=True))
        return [(self.optimized, optimized) for _ in passes]


class PartsOff:
    """The parts of a tool that takes the names of those to leave out.

    Attributes:
        names: of the parts.
    """

    def __init__(
        self,
        model: onnx.ModelProto,
        names: Sequence[str],
        without: Callable[[onnx.ModelProto, frozenset[str]], onnx.ModelProto],
    ) -> None:
        self.names = tuple(names)
        self._model, self._without = copied(model), without

    def run(self, off: frozenset[str]) -> Executed:
        """Returns the tool's model without these parts; the model that it is given is a copy each time.

        Raises:
            Exception: whatever the tool raises.
        """
        with silenced():
            made = self._without(copied(self._model), off)
        _require_model("the tool", made)
        return Executed(made)


def copied(model: onnx.ModelProto) -> onnx.ModelProto:
    """Returns a copy that shares nothing with the model."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    return copy


def serialized(model: onnx.ModelProto) -> bytes:
    """Returns the bytes by which models are compared."""
    content: bytes = model.SerializeToString(deterministic=True)
    return content


def weight_bytes(model: onnx.ModelProto) -> int:
    """Returns how many bytes the tensors of a model take, texts not counted."""
    return sum(size_bytes(t) for t in tensors(model) if t.data_type != onnx.TensorProto.STRING)


def save(model: onnx.ModelProto, path: Any) -> None:
    """Writes a model as one file, or with its weights beside it where they are too large for one; changes nothing."""
    if weight_bytes(model) <= LARGEST_MESSAGE_BYTES:
        onnx.save(model, str(path))
        return
    onnx.save(copied(model), str(path), save_as_external_data=True, location=f"{path.name}.data", size_threshold=1024)


@contextlib.contextmanager
def silenced() -> Iterator[None]:
    """Keeps what tools print out of the user's terminal."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        yield


def blame(error: BaseException) -> tuple[NodeRef, ...]:
    """Returns the innermost variable `node` of the frames that an exception passed through; read from no text."""
    seen: set[int] = set()
    found: tuple[NodeRef, ...] = ()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        found = _node_of(current.__traceback__) or found
        current = current.__cause__ or current.__context__
    return found


def _node_of(traceback: TracebackType | None) -> tuple[NodeRef, ...]:
    found: tuple[NodeRef, ...] = ()
    while traceback is not None:
        node = traceback.tb_frame.f_locals.get("node")
        operator = getattr(node, "op_type", None) or getattr(node, "op", None)
        if isinstance(operator, str):
            name = getattr(node, "name", None)
            found = (NodeRef(name if isinstance(name, str) else "", operator),)
        traceback = traceback.tb_next
    return found


def _require_model(tool: str, result: Any) -> None:
    if not isinstance(result, onnx.ModelProto):
        raise TypeError(f"{tool} returned {type(result).__name__} where a ModelProto was expected")
