"""PyTorch programs as executables: the eager module with its measured floors, and captured programs in float64."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.utils import _pytree as pytree
from torch.utils.weak import WeakTensorKeyDictionary

from trueport.adapters.float64.constants import KnownNumbers
from trueport.adapters.float64.torch.calls import dtype_name
from trueport.adapters.float64.torch.observability import Recorder, Unseen, unseen_operators
from trueport.adapters.float64.torch.shadow import WIDE, Shadow
from trueport.adapters.float64.torch.state import preserved
from trueport.adapters.float64.torch.tape import Tape, TapeResult, record
from trueport.adapters.float64.torch.tracing import EagerRecorder, NodeRun, Running
from trueport.adapters.protocols import NoFloat64Error, Wide
from trueport.core.errors import SourceError
from trueport.core.subject import Example
from trueport.core.trace import TracedRun
from trueport.inputs.draw import InputSet
from trueport.oracle.compare import ReferenceOutput
from trueport.oracle.floor import elementwise_floor
from trueport.oracle.noise import Draws
from trueport.oracle.stability import trusted, unstable_elements
from trueport.oracle.units import real_dtype

Array = NDArray[Any]


def rebuild(example: Example, arrays: tuple[Array, ...]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Returns the example's arguments with its tensors replaced, in the order in which they flatten."""
    leaves, spec = pytree.tree_flatten((tuple(example.args), dict(example.kwargs)))
    values = iter(arrays)
    fresh = [to_tensor(next(values), leaf) if isinstance(leaf, Tensor) else copy.deepcopy(leaf) for leaf in leaves]
    args, kwargs = pytree.tree_unflatten(fresh, spec)
    return args, kwargs


def to_tensor(array: Array, like: Tensor) -> Tensor:
    """Returns a private tensor of the example's type with these values."""
    held = np.array(array, copy=True)
    if held.dtype.name == "bfloat16":
        return torch.from_numpy(held.view(np.int16)).view(torch.bfloat16).to(like.dtype)
    return torch.from_numpy(held).to(like.dtype)


def to_array(tensor: Tensor) -> Array:
    """Returns the tensor's values in its own type; that of bfloat16, which NumPy lacks, is `ml_dtypes.bfloat16`."""
    plain = tensor.detach().cpu().resolve_conj().resolve_neg()
    if plain.dtype is torch.bfloat16:
        bits: Array = plain.contiguous().view(torch.int16).numpy()
        return bits.view(real_dtype("bfloat16"))
    values: Array = plain.numpy()
    return values


def output_leaves(outputs: Any) -> list[tuple[str, Any]]:
    """Returns (path, tensor or number) of everything in an output that can be compared."""
    leaves, _ = pytree.tree_flatten_with_path(outputs)
    named = [(pytree.keystr(path).strip("[].'") or "output", leaf) for path, leaf in leaves]
    return [(name, leaf) for name, leaf in named if isinstance(leaf, Tensor | int | float) and leaf is not None]


@dataclass(frozen=True)
class Reference:
    """The source at one input set.

    Attributes:
        outputs: values and floors.
        tape: operators without float64 kernel, random operators, literals, undecidable branches.
        real: the outputs of the plain eager run in the source's own types.
        structure: how outputs nest, as text.
    """

    outputs: tuple[ReferenceOutput, ...]
    tape: TapeResult
    real: tuple[Array, ...]
    structure: str

    @property
    def ties(self) -> bool:
        """Whether a selection met equal elements, whose order the framework leaves open."""
        return self.tape.ties


class EagerModule:
    """The source: runs the module as it is, under the tape, and puts its state back.

    Args:
        module: in the mode in which the user handed it over.
        example: whose tensors are replaced by those of an input set.
        seed: of all noise.
    """

    def __init__(self, module: nn.Module, example: Example, *, seed: int) -> None:
        self.module = module
        self.example = example
        self.seed = seed
        self._parameters = WeakTensorKeyDictionary()

    def run(self, inputs: InputSet, *, fresh_random: bool = False) -> Any:
        """Returns the module's own outputs in its own types, as a user gets them."""
        args, kwargs = rebuild(self.example, inputs.arrays)
        with preserved(self.module), torch.no_grad():
            if fresh_random:
                torch.rand(1)  # moves the generator on; `preserved` puts it back
            return self.module(*args, **kwargs)

    def real(self, inputs: InputSet, *, fresh_random: bool) -> tuple[Array, ...]:
        """Returns the outputs of a plain run as arrays; with other random numbers than the first run if asked."""
        return tuple(_plain_array(leaf) for _, leaf in output_leaves(self.run(inputs, fresh_random=fresh_random)))

    def reference(self, inputs: InputSet, number: int, draws: Draws) -> Reference:
        """Returns outputs in float64 with the floors that `draws` noisy runs give.

        Args:
            inputs: one input set.
            number: of the set; noise depends on it and on the seed only.
            draws: noisy runs.

        Raises:
            SourceError: the module itself refuses the inputs.
        """
        try:
            outputs = self.run(inputs)
        except Exception as error:
            raise SourceError(f"{type(error).__name__}: {error}") from error
        plain = [leaf for _, leaf in output_leaves(outputs)]
        args, kwargs = rebuild(self.example, inputs.arrays)
        tensors = tuple(t for t in pytree.tree_leaves((args, kwargs)) if isinstance(t, Tensor))
        rng = np.random.default_rng([self.seed, number, draws.total])
        with preserved(self.module):
            outputs, tape = record(
                lambda: self.module(*args, **kwargs), draws=draws, rng=rng, inputs=tensors, parameters=self._parameters
            )
        leaves = output_leaves(outputs)
        values = tuple(_reference_output(name, leaf, tape, draws) for name, leaf in leaves)
        structure = str(pytree.tree_structure(outputs)).replace("\n", " ")
        real = tuple(_plain_array(p) for p in plain)
        if len(real) == len(values):
            values = tuple(trusted(v, r) for v, r in zip(values, real, strict=True))
        return Reference(values, tape.result, real, structure)

    def trace(self, inputs: InputSet, *, draws: int, limit_bytes: int) -> TracedRun:
        """Returns one run with the values of all operators and their floors in float64.

        Args:
            inputs: one input set.
            draws: noisy runs.
            limit_bytes: what all values together may take; those beyond it are counted and left out.
        """
        args, kwargs = rebuild(self.example, inputs.arrays)
        tensors = tuple(t for t in pytree.tree_leaves((args, kwargs)) if isinstance(t, Tensor))
        running = Running()
        recorder = EagerRecorder(limit_bytes, running)
        with preserved(self.module), running.within(self.module):
            outputs, tape = record(
                lambda: self.module(*args, **kwargs),
                draws=Draws(0, draws),
                rng=np.random.default_rng([self.seed, 0x7472]),
                inputs=tensors,
                parameters=self._parameters,
                recorder=recorder,
            )
        leaves = [leaf for _, leaf in output_leaves(outputs)]
        return recorder.run([tape.shadow(leaf) if isinstance(leaf, Tensor) else None for leaf in leaves])

    def unseen(self, inputs: InputSet, threshold: float) -> list[Unseen] | None:
        """Returns the operators that no output shows at this input set; None where this cannot be determined."""
        args, kwargs = rebuild(self.example, inputs.arrays)
        tensors = tuple(t for t in pytree.tree_leaves((args, kwargs)) if isinstance(t, Tensor))
        recorder, draws = Recorder(), Draws(0, 2)
        with preserved(self.module):
            outputs, tape = record(
                lambda: self.module(*args, **kwargs),
                draws=draws,
                rng=np.random.default_rng([self.seed, 0]),
                inputs=tensors,
                parameters=self._parameters,
                recorder=recorder,
            )
        leaves = [leaf for _, leaf in output_leaves(outputs) if isinstance(leaf, Tensor) and leaf.dtype in WIDE]
        shadows = [tape.shadow(leaf) for leaf in leaves]
        floors = [elementwise_floor(to_array(s.main), [to_array(r) for r in s.noisy or []]) for s in shadows]
        return unseen_operators(recorder, shadows, floors, threshold)


def _plain_array(leaf: Any) -> Array:
    return to_array(leaf) if isinstance(leaf, Tensor) else np.asarray(leaf)


def _reference_output(name: str, leaf: Any, tape: Tape, draws: Draws) -> ReferenceOutput:
    """One output with its floors; a Python number is exact."""
    if not isinstance(leaf, Tensor):
        value = np.asarray(leaf)
        zero, false = np.zeros(value.shape), np.zeros(value.shape, bool)
        return ReferenceOutput(name, value.dtype.name, value, zero, zero, false, draws.total)
    shadow = tape.shadow(leaf)
    value = to_array(shadow.main)
    floors = [np.zeros(value.shape), np.zeros(value.shape)]
    if shadow.noisy is not None and leaf.dtype in WIDE:
        runs = [to_array(run) for run in shadow.noisy]
        floors = [
            elementwise_floor(value, runs[draws.arithmetic :]),
            elementwise_floor(value, runs[: draws.arithmetic]),
        ]
    away = [to_array(other) for other in shadow.other or ()]
    noisy = [to_array(run) for run in (shadow.noisy or [])[: draws.arithmetic]] if value.dtype.kind == "f" else []
    unstable = unstable_elements(value, away, floors[1], noisy)
    if tape.result.undecidable:
        unstable = np.ones(value.shape, bool)
    others = tuple(to_array(other) for other in shadow.other or () if other.shape == shadow.main.shape)
    return ReferenceOutput(name, dtype_name(leaf.dtype), value, floors[0], floors[1], unstable, draws.total, others)


class CapturedProgram:
    """An `ExportedProgram`, run through its graph module with parameters looked up by its signature."""

    def __init__(self, program: Any, example: Example) -> None:
        self._program = program
        self._example = example
        self._parameters = WeakTensorKeyDictionary()
        self._flat = _graph_caller(program)

    def evaluate(self, inputs: InputSet, known: KnownNumbers) -> list[Wide]:
        """Returns the outputs in float64."""
        args, kwargs = rebuild(self._example, inputs.arrays)
        leaves = pytree.tree_leaves((args, kwargs))
        return evaluate_call(lambda: self._flat(leaves), leaves, self._parameters, known)

    def noisy(self, inputs: InputSet, *, draws: int, seed: int, known: KnownNumbers) -> list[list[Array]]:
        """Returns evaluations with the noise of float64."""
        args, kwargs = rebuild(self._example, inputs.arrays)
        leaves = pytree.tree_leaves((args, kwargs))
        return noisy_call(lambda: self._flat(leaves), leaves, draws=draws, seed=seed, known=known)

    def trace(self, inputs: InputSet, known: KnownNumbers, *, draws: int, seed: int, limit_bytes: int) -> TracedRun:
        """Returns one run with the values of all nodes and their floors in float64; see `GraphExecutable.trace`."""
        args, kwargs = rebuild(self._example, inputs.arrays)
        leaves = pytree.tree_leaves((args, kwargs))
        run = NodeRun(self._program.graph_module, limit_bytes)
        caller = _graph_caller(self._program, run.run)
        tensors = tuple(t for t in leaves if isinstance(t, Tensor))
        rng = np.random.default_rng([seed, 0x7472])

        def begin(tape: Tape) -> None:
            run.tape = tape

        record(lambda: caller(leaves), draws=Draws(0, draws), rng=rng, inputs=tensors, known=known, begin=begin)
        return run.traced(_output_names(self._program))


def noisy_call(
    call: Callable[[], Any], leaves: list[Any], *, draws: int, seed: int, known: KnownNumbers
) -> list[list[Array]]:
    """Returns evaluations of a call with float64-sized noise after every operator."""
    tensors = tuple(t for t in leaves if isinstance(t, Tensor))
    rng = np.random.default_rng([seed, 0x6E6F])
    outputs, tape = record(call, draws=Draws(0, draws), rng=rng, inputs=tensors, known=known)
    shadows = [tape.shadow(leaf) if isinstance(leaf, Tensor) else leaf for _, leaf in output_leaves(outputs)]
    return [[_of_run(shadow, k) for shadow in shadows] for k in range(draws)]


def traced_call(
    call: Callable[[], Any], leaves: list[Any], *, draws: int, seed: int, known: KnownNumbers, limit_bytes: int
) -> TracedRun:
    """Returns one run of a call with the values of all operators and their floors in float64."""
    recorder = EagerRecorder(limit_bytes, Running())
    tensors = tuple(t for t in leaves if isinstance(t, Tensor))
    rng = np.random.default_rng([seed, 0x7472])
    outputs, tape = record(call, draws=Draws(0, draws), rng=rng, inputs=tensors, known=known, recorder=recorder)
    leaf_values = [leaf for _, leaf in output_leaves(outputs)]
    return recorder.run([tape.shadow(leaf) if isinstance(leaf, Tensor) else None for leaf in leaf_values])


def _of_run(shadow: Any, number: int) -> Array:
    if not isinstance(shadow, Shadow):
        return np.asarray(shadow)
    return to_array(shadow.main if shadow.noisy is None else shadow.noisy[number])


def evaluate_call(
    call: Callable[[], Any], leaves: list[Any], parameters: WeakTensorKeyDictionary | None, known: KnownNumbers
) -> list[Wide]:
    """Returns the outputs of a call in float64, without noise."""
    tensors = tuple(t for t in leaves if isinstance(t, Tensor))
    rng = np.random.default_rng(0)
    outputs, tape = record(call, draws=Draws(0, 0), rng=rng, inputs=tensors, parameters=parameters, known=known)
    if tape.result.unsupported:
        raise NoFloat64Error(tuple(sorted(tape.result.unsupported)))
    return [
        Wide(to_array(tape.shadow(leaf).main), dtype_name(leaf.dtype))
        if isinstance(leaf, Tensor)
        else Wide(np.asarray(leaf), np.asarray(leaf).dtype.name)
        for _, leaf in output_leaves(outputs)
    ]


def _output_names(program: Any) -> tuple[str, ...]:
    """Returns the names of the nodes that are the program's user outputs."""
    from torch.export.graph_signature import OutputKind

    specs = program.graph_signature.output_specs
    return tuple(str(getattr(s.arg, "name", "")) for s in specs if s.kind is OutputKind.USER_OUTPUT)


def _graph_caller(program: Any, run: Callable[..., Any] | None = None) -> Callable[[list[Any]], Any]:
    """Returns a function of the flat user inputs that runs the program's graph and returns its user outputs.

    Args:
        program: the `ExportedProgram`.
        run: what runs the graph instead of its module.
    """
    from torch.export.graph_signature import InputKind, OutputKind

    signature = program.graph_signature
    module = run or program.graph_module
    user_outputs = [i for i, spec in enumerate(signature.output_specs) if spec.kind is OutputKind.USER_OUTPUT]

    def call(leaves: list[Any]) -> Any:
        user = iter(leaves)
        flat = []
        for spec in signature.input_specs:
            if spec.kind is InputKind.USER_INPUT:
                flat.append(next(user))
            elif spec.kind is InputKind.CONSTANT_TENSOR:
                flat.append(program.constants[spec.target].clone())
            elif spec.kind in (InputKind.PARAMETER, InputKind.BUFFER):
                found = program.state_dict.get(spec.target)
                found = program.constants[spec.target] if found is None else found
                # A captured program may still write its buffers, which are the module's own.
                flat.append(found.clone() if spec.kind is InputKind.BUFFER else found)
            else:
                flat.append(program.constants[spec.target])
        outputs = module(*flat)
        return [outputs[i] for i in user_outputs]

    return call
