"""Runs of PyTorch programs with the values of all operators: the eager module, and captured programs by their nodes."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, fx, nn

from trueport.adapters.float64.torch.observability import Entry, Recorder
from trueport.adapters.float64.torch.shadow import WIDE, Shadow
from trueport.adapters.float64.torch.tape import Tape
from trueport.core.trace import CONSTANTS_SHARE, TracedNode, TracedRun
from trueport.onnxgraph.origins import source_of_stack
from trueport.oracle.floor import Spread

Array = NDArray[Any]


class _Values:
    """Values by name, up to a limit of memory, with their floors."""

    def __init__(self, limit_bytes: int) -> None:
        self.values: dict[str, Array] = {}
        self.floors: dict[str, Array] = {}
        self.left_out = 0
        self._left = {False: limit_bytes, True: int(limit_bytes * CONSTANTS_SHARE)}

    def add(self, name: str, shadow: Shadow, *, constant: bool) -> None:
        """Keeps a private copy: operators in place may write to the tensor later."""
        floating = shadow.noisy is not None and shadow.main.dtype in WIDE
        size = shadow.main.numel() * shadow.main.element_size() * (2 if floating else 1)
        if size > self._left[False] or (constant and size > self._left[True]):
            self.left_out += 1
            return
        self._left[False] -= size
        self._left[True] -= size if constant else 0
        main = _array(shadow.main)
        self.values[name] = main
        if floating:
            spread = Spread(main)
            for run in shadow.noisy or ():
                if tuple(run.shape) == main.shape:
                    spread.add(_view(run))
            self.floors[name] = spread.floor()


class EagerRecorder(Recorder):
    """Receives the operators of an eager run.

    Args:
        limit_bytes: what all values together may take.
        module: path of the module that is running; asked at each operator.
    """

    everything = True

    def __init__(self, limit_bytes: int, module: Running) -> None:
        super().__init__()
        self._kept = _Values(limit_bytes)
        self._module = module
        self._nodes: list[TracedNode] = []
        self._names: WeakKeyDictionary[Shadow, str] = WeakKeyDictionary()
        self._inputs = 0
        self._constants: set[str] = set()

    def add(self, entry: Entry) -> None:
        """Keeps what an operator computed."""
        number = len(self._nodes)
        operator = entry.operator.removeprefix("<OpOverload(op='").replace("', overload='", ".").removesuffix("')>")
        outputs = tuple(f"{number}:{entry.name}:{i}" for i in range(len(entry.results)))
        inputs = tuple(self._name(shadow) for shadow in entry.shadows)
        self._nodes.append(
            TracedNode(f"{entry.name}_{number}", operator, inputs, outputs, entry.source, self._module.path)
        )
        for name, shadow in zip(outputs, entry.results, strict=True):
            shadow.refresh()
            self._names[shadow] = name
            self._kept.add(name, shadow, constant=entry.constant)
            if entry.constant:
                self._constants.add(name)

    def run(self, outputs: list[Shadow | None]) -> TracedRun:
        """Returns the run; an output that no operator made has no name."""
        named = tuple("" if shadow is None else self._names.get(shadow, "") for shadow in outputs)
        kept = self._kept
        return TracedRun(tuple(self._nodes), kept.values, kept.floors, named, frozenset(self._constants), kept.left_out)

    def _name(self, shadow: Shadow) -> str:
        if shadow not in self._names:
            self._names[shadow] = f"input:{self._inputs}"
            self._inputs += 1
            if shadow.constant:
                self._constants.add(self._names[shadow])
        return self._names[shadow]


class Running:
    """Knows which module is running, by hooks."""

    def __init__(self) -> None:
        self._paths: list[str] = []

    @property
    def path(self) -> str:
        """Dotted path of the innermost module."""
        return self._paths[-1] if self._paths else ""

    @contextmanager
    def within(self, module: nn.Module) -> Iterator[None]:
        """Follows the calls of a module and its parts; the hooks are gone afterwards."""
        handles = []
        for name, part in module.named_modules():
            handles.append(part.register_forward_pre_hook(lambda *_, name=name: self._paths.append(name)))
            handles.append(part.register_forward_hook(lambda *_: self._left(), always_call=True))
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()

    def _left(self) -> None:
        if self._paths:
            self._paths.pop()


class NodeRun(fx.Interpreter):  # type: ignore[misc]  # it ships no types
    """Runs the graph of a captured program under a tape and keeps what its nodes give.

    Args:
        module: of the captured program.
        limit_bytes: what all values together may take.
    """

    def __init__(self, module: fx.GraphModule, limit_bytes: int) -> None:
        super().__init__(module)
        self.tape: Tape | None = None
        self._kept = _Values(limit_bytes)
        self._nodes: list[TracedNode] = []
        self._constants: set[str] = set()

    def run_node(self, n: fx.Node) -> Any:
        """Runs one node."""
        result = super().run_node(n)
        if n.op in ("call_function", "call_module", "call_method") and self.tape is not None:
            tensors = [result] if isinstance(result, Tensor) else list(result) if _all_tensors(result) else []
            alone = isinstance(result, Tensor)
            outputs = tuple(n.name if alone else f"{n.name}[{i}]" for i in range(len(tensors)))
            made, n = outputs or (n.name,), _of_several(n)
            inputs = tuple(arg.name for arg in n.all_input_nodes)
            module = _module_path(n.meta.get("nn_module_stack"))
            source = source_of_stack(n.meta.get("stack_trace") or "")
            self._nodes.append(TracedNode(n.name, _target(n.target), inputs, made, source, module, n.name))
            for name, tensor in zip(outputs, tensors, strict=True):
                shadow = self.tape.shadow(tensor)
                self._kept.add(name, shadow, constant=shadow.constant)
                if shadow.constant:
                    self._constants.add(name)
        return result

    def traced(self, outputs: tuple[str, ...]) -> TracedRun:
        """Returns the run."""
        kept = self._kept
        return TracedRun(
            tuple(self._nodes), kept.values, kept.floors, outputs, frozenset(self._constants), kept.left_out
        )


def _of_several(node: fx.Node) -> fx.Node:
    """Returns the node itself; for one that takes a result out of several, the node that made them."""
    maker = node.args[0] if node.target is operator.getitem and node.args else None
    return maker if isinstance(maker, fx.Node) and maker.op == "call_function" else node


def _array(tensor: Tensor) -> Array:
    return np.array(_view(tensor), copy=True)


def _view(tensor: Tensor) -> Array:
    """Returns an array that may share the tensor's memory."""
    plain = tensor.detach().resolve_conj().resolve_neg()
    if plain.dtype in (torch.bfloat16, torch.float16):
        plain = plain.to(WIDE[plain.dtype])
    return np.asarray(plain.numpy())


def _all_tensors(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(v, Tensor) for v in value)


def _target(target: Any) -> str:
    return str(target) if isinstance(target, torch._ops.OpOverload) else getattr(target, "__name__", str(target))


def _module_path(stack: Any) -> str:
    if not stack:
        return ""
    path, _ = list(stack.values())[-1]
    return str(path)
