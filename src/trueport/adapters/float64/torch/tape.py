"""The tape: a real eager run with a float64 companion for every tensor, kept in step operator by operator.

A dispatch mode sees the run's own operators, branches and literals, so nothing has to be captured, and what the source
says about types (`finfo(x.dtype)`, casts, integer arithmetic) stays as it is. Beside each operator of the real run the
same operator is evaluated in float64: once without noise, and once for each draw of rounding noise. The rounding error
that this operator really makes is measured on the way, on the same inputs.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.weak import WeakIdKeyDictionary, WeakTensorKeyDictionary

from trueport.adapters.float64.constants import KnownNumbers
from trueport.adapters.float64.torch.alternates import adopt_decision, has_ties, margins, pushed
from trueport.adapters.float64.torch.calls import (
    Call,
    Evaluated,
    columns,
    decides,
    dtype_name,
    identity,
    narrowed,
    replaced,
    replaced_kwargs,
    tensors_in,
)
from trueport.adapters.float64.torch.injection import Injector, saturate
from trueport.adapters.float64.torch.jumps import ALTERNATES, continuous_part, reselected, selection_dim, singular
from trueport.adapters.float64.torch.observability import Entry, Recorder, source_line
from trueport.adapters.float64.torch.operators import describe
from trueport.adapters.float64.torch.shadow import NARROW, WIDE, Shadow, widen
from trueport.oracle.noise import Draws


@dataclass
class TapeResult:
    """What a run left behind besides its outputs.

    Attributes:
        unsupported: operators without a float64 kernel; from there on the real values stand in.
        random: operators that drew random numbers.
        literals: floating-point literals of the run, as their own type holds them.
        types: names of the floating-point types of values of the run.
        ties: a selection met equal elements, whose order the framework leaves open.
        undecidable: a branch of the model or the shape of a tensor hangs on a decision that rounding takes.
        operators: number of operators seen.
    """

    unsupported: dict[str, int] = field(default_factory=dict)
    random: set[str] = field(default_factory=set)
    literals: set[float] = field(default_factory=set)
    types: set[str] = field(default_factory=set)
    ties: bool = False
    undecidable: bool = False
    operators: int = 0


class Tape(TorchDispatchMode):  # type: ignore[misc]  # torch is not typed
    """Runs under it are accompanied in float64; `shadow(tensor)` gives the companion of an output.

    Args:
        draws: how many noisy runs; none for the evaluation of a candidate.
        rng: where the noise comes from.
        inputs: tensors that the model's result may depend on; all others count as constants.
        parameters: float64 copies of parameters, shared between runs; filled on the way.
        known: for a candidate, what the source holds.
        recorder: receives the operators, to find out which of them no output shows.
    """

    def __init__(
        self,
        *,
        draws: Draws,
        rng: np.random.Generator,
        inputs: tuple[Tensor, ...] = (),
        parameters: WeakTensorKeyDictionary | None = None,
        known: KnownNumbers | None = None,
        recorder: Recorder | None = None,
    ) -> None:
        super().__init__()
        self.result = TapeResult()
        self._draws = draws
        self._injector = Injector(draws, rng)
        self._shadows = WeakIdKeyDictionary()
        self._parameters = parameters
        self._known = known
        self._recorder = recorder
        self._item_values: set[float] = set()
        for tensor in inputs:
            if tensor.dtype in WIDE:
                self.result.types.add(dtype_name(tensor.dtype))
            self._shadows[tensor] = Shadow(widen(tensor) if tensor.dtype in WIDE else tensor.clone(), exact=True)

    # ------------------------------------------------------------------ companions

    def shadow(self, tensor: Tensor) -> Shadow:
        """Returns the companion of a tensor of the run; a tensor never seen is a constant."""
        found: Shadow | None = self._shadows.get(tensor)
        if found is not None:
            found.refresh()
            return found
        if tensor.dtype not in WIDE:
            return Shadow(tensor, exact=True, constant=True)
        if self._parameters is not None and isinstance(tensor, torch.nn.Parameter):
            cached = self._parameters.get(tensor)
            if cached is None or cached[0] != tensor._version:
                cached = (tensor._version, widen(tensor))
                self._parameters[tensor] = cached
            result = Shadow(cached[1], exact=True, constant=True)
        else:
            result = Shadow(widen(tensor), exact=True, constant=True)
        self._shadows[tensor] = result
        return result

    # ------------------------------------------------------------------ one operator

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        facts = describe(func)
        self.result.operators += 1
        done: Any = None
        if facts.random:
            before_state = torch.get_rng_state()
            done = func(*args, **kwargs)
            own = kwargs.get("generator") is not None
            # Attention without dropout may draw, and does not.
            if own or not torch.equal(before_state, torch.get_rng_state()):
                return self._random(func, done)
        tensors = list(tensors_in(args)) + list(tensors_in(kwargs.values()))
        shadows = [self.shadow(t) for t in tensors]
        if facts.silent:
            return func(*args, **kwargs)
        if facts.name == "_local_scalar_dense":
            return self._scalar(func, args[0], shadows[0])
        completed = facts.complete(args, kwargs)
        if facts.name == "nan_to_num":
            completed = _with_limits(args, completed)
        call = Call(func, facts, args, completed, tensors, shadows)
        floating = any(t.dtype in WIDE for t in tensors)
        trivial = not floating and all(
            s.main is t or (s.exact and s.other is None) for s, t in zip(shadows, tensors, strict=True)
        )
        if facts.mutates and not trivial:
            self._prepare_write(call)
        local = None if trivial or call.exact or all(s.exact for s in shadows) else self._local(call)
        before = None if trivial else self._evaluate(call)
        real = func(*args, **kwargs) if done is None else done
        if trivial and tensors and any(t.dtype in WIDE for t in tensors_in([real])):
            # Floating-point numbers from integers: true division, casts, means.
            before, local = self._from_integers(call), real
        if before is None or not any(True for _ in tensors_in([real])):
            self._register_trivial(call, real, trivial=trivial)
            if self._recorder is not None and self._recorder.everything:
                self._record(self._recorder, call, real)
            return real
        self._register(call, real, before, local if local is not None else real)
        if self._recorder is not None:
            self._record(self._recorder, call, real)
        return real

    def _record(self, recorder: Recorder, call: Call, real: Any) -> None:
        results = [self.shadow(t) for t in tensors_in([real])]
        literal = self._literals_of(call)

        def again(table: dict[int, Tensor]) -> Any:
            return call.func(*replaced(call.args, table, literal), **replaced_kwargs(call.kwargs, table, literal))

        constant = call.constant
        frozen = {
            id(t): s.main.clone()
            for t, s in zip(call.tensors, call.shadows, strict=True)
            if not s.main.is_floating_point()
        }
        recorder.add(
            Entry(
                again,
                str(call.func),
                call.facts.name,
                source_line(),
                call.tensors,
                call.shadows,
                results,
                constant,
                call.exact,
                frozen,
            )
        )

    def _random(self, func: Any, real: Any) -> Any:
        """Random numbers are drawn once: the real ones are the companion's as well."""
        self.result.random.add(str(func))
        for tensor in tensors_in([real]):
            self._shadows[tensor] = Shadow(widen(tensor) if tensor.dtype in WIDE else tensor, exact=True)
        return real

    def _scalar(self, func: Any, tensor: Tensor, shadow: Shadow) -> Any:
        """A tensor becomes a number of the program: the float64 one, and a branch may hang on it."""
        if shadow.other is not None and any(not torch.equal(o, shadow.main) for o in shadow.other):
            self.result.undecidable = True
        if tensor.dtype in WIDE and not tensor.is_complex():
            value = float(shadow.main.item())
            self._item_values.add(value)
            return value
        return func(tensor)

    def _prepare_write(self, call: Call) -> None:
        """Gives what is written its own float64 storage before the real tensor changes."""
        for position in call.facts.mutates:
            target = call.args[position] if position < len(call.args) else None
            if not isinstance(target, Tensor):
                continue
            index = next(i for i, t in enumerate(call.tensors) if t is target)
            shadow = call.shadows[index]
            if shadow.main is target:
                # An integer tensor is its own companion until something that rounding decides is written into it.
                shadow.main = target.clone()
                shadow.constant = shadow.constant and call.constant
                self._shadows[target] = shadow
            if target.dtype not in WIDE:
                if any(s.other is not None for s in call.shadows):
                    shadow.materialize(draws=0, others=ALTERNATES)
                continue
            if shadow.constant and shadow.base is None and isinstance(target, torch.nn.Parameter):
                shadow.main = shadow.main.clone()
            noisy = any(s.noisy is not None for s in call.shadows) or not call.exact
            other = any(s.other is not None for s in call.shadows)
            shadow.materialize(draws=self._draws.total if noisy else 0, others=ALTERNATES if other else 0)
            shadow.exact = shadow.root().exact = False
            depends = not call.constant
            if depends:
                shadow.constant = shadow.root().constant = False

    def _local(self, call: Call) -> Any:
        """The operator in its own type on the float64 run's inputs, rounded; None where that fails."""
        rounded = {id(t): narrowed(s.main, t) for t, s in zip(call.tensors, call.shadows, strict=True)}
        with contextlib.suppress(Exception):
            return call.func(*replaced(call.args, rounded), **replaced_kwargs(call.kwargs, rounded))
        return None

    def _evaluate(self, call: Call) -> Evaluated | None:
        """The operator in float64, with and without noise, and on the alternates."""
        literal = self._literals_of(call)
        try:
            main = call.apply([s.main for s in call.shadows], literal)
        except Exception:  # noqa: BLE001 - any kernel may lack any type; the result says which
            self.result.unsupported[str(call.func)] = self.result.unsupported.get(str(call.func), 0) + 1
            return None
        draws = self._draws.total
        noisy: list[Any] | None = None
        if draws and any(s.noisy is not None for s in call.shadows) and not call.facts.jumps:
            noisy = [
                call.apply([s.main if s.noisy is None else s.noisy[k] for s in call.shadows], literal)
                for k in range(draws)
            ]
        elif draws and call.facts.jumps:
            noisy = self._noisy_jump(call, main)
        return Evaluated(main, noisy, self._other(call, literal))

    def _from_integers(self, call: Call) -> Evaluated | None:
        """The operator on integers held in float64; None where it takes none, and the real result stands in."""
        values = [s.main if s.main.dtype is torch.bool else s.main.double() for s in call.shadows]
        with contextlib.suppress(Exception):
            main = call.apply(values, self._literal)
            found = list(tensors_in([main]))
            if found and all(t.dtype not in NARROW for t in found):
                return Evaluated(main, None, None)
        return None

    def _literals_of(self, call: Call) -> Callable[[Any], Any]:
        """How this operator takes its literals: in double precision where one of its tensors has it."""
        found = {t.dtype for t in call.tensors}
        if found & {torch.float64, torch.complex128}:
            return self._wide_literal
        return self._literal if found & NARROW else identity

    def _wide_literal(self, value: float) -> float:
        """A literal of an operator in double precision, as it is."""
        if value not in self._item_values:
            self.result.literals.add(value)
        return value

    def _literal(self, value: float) -> float:
        """A literal as float32 holds it: kernels of all narrower types compute with float32 scalars."""
        if value in self._item_values:
            return value
        with np.errstate(over="ignore"):
            rounded = float(np.float32(value))
        self.result.literals.add(rounded)
        return rounded

    def _noisy_jump(self, call: Call, main: Any) -> list[Any] | None:
        """Noisy runs keep the main run's decisions, so that floors measure noise and nothing else."""
        if not isinstance(main, Tensor) or not any(s.noisy is not None for s in call.shadows):
            return None
        plain = [s.main for s in call.shadows]
        tables = [{id(t): v for t, v in zip(call.tensors, plain, strict=True)}]
        result = []
        for k in range(self._draws.total):
            values = [s.main if s.noisy is None else s.noisy[k] for s in call.shadows]
            table = {id(t): v for t, v in zip(call.tensors, values, strict=True)}
            part = continuous_part(
                call.facts.name, main, list(replaced(call.args, tables[0])), list(replaced(call.args, table))
            )
            if part is None:
                return None
            result.append(part)
        return result

    # ------------------------------------------------------------------ jumps

    def _other(self, call: Call, literal: Callable[[Any], Any]) -> list[Any] | None:
        """The operator on the alternates; at a jump the alternates are pushed across it."""
        inherited = any(s.other is not None for s in call.shadows)
        near = margins(call, self._draws) if self._draws.arithmetic and decides(call) else None
        if not inherited and near is None:
            return None
        if near is not None and has_ties(call):
            self.result.ties = True
        results = []
        try:
            for number in range(ALTERNATES):
                values = [s.main if s.other is None else s.other[number] for s in call.shadows]
                if near is None:
                    results.append(call.apply(values, literal))
                    continue
                result = call.apply(pushed(call, values, near, number), literal)
                if call.facts.selects:
                    result = reselected(values[0], result, selection_dim(call.facts.name, call.args, call.kwargs))
                results.append(result)
        except Exception:  # noqa: BLE001 - an alternate may have another shape than the program expects
            self.result.undecidable = True
            return None
        return results

    # ------------------------------------------------------------------ results

    def _register_trivial(self, call: Call, real: Any, *, trivial: bool) -> None:
        """Results that are their own companions: integers from integers, or values without a float64 kernel."""
        constant = call.constant
        for tensor in tensors_in([real]):
            if any(tensor is t for t in call.tensors):
                continue
            if tensor.dtype in WIDE:
                shadow = Shadow(widen(tensor), exact=True, constant=constant)
                if not call.tensors:
                    self._injector.factory(shadow, tensor)
                elif not trivial:
                    self._injector.stand_in(shadow, tensor)
                self._shadows[tensor] = shadow
            elif not constant:
                self._shadows[tensor] = Shadow(tensor, exact=True)

    def _register(self, call: Call, real: Any, evaluated: Evaluated, local: Any) -> None:
        reals = list(tensors_in([real]))
        mains = list(tensors_in([evaluated.main]))
        noisies = columns(evaluated.noisy, len(reals))
        others = columns(evaluated.other, len(reals))
        locals_ = list(tensors_in([local])) if local is not None else []
        constant = call.constant
        if others[0] is None and singular(call.facts.name, mains):
            others[0] = [mains[0], torch.full_like(mains[0], torch.nan)]
        for number, (tensor, main) in enumerate(zip(reals, mains, strict=True)):
            rounded = locals_[number] if number < len(locals_) else None
            written = next((s for t, s in zip(call.tensors, call.shadows, strict=True) if t is tensor), None)
            if written is not None and call.facts.mutates:
                self._after_write(call, tensor, written, rounded)
                continue
            shadow = self._new_shadow(call, tensor, main, number, noisies, others, constant)
            if tensor.shape != shadow.main.shape:
                self.result.undecidable = True
                shadow = Shadow(widen(tensor), constant=constant)
            self._shadows[tensor] = shadow
            self._finish(call, shadow, tensor, rounded, number, mains)

    def _new_shadow(
        self,
        call: Call,
        tensor: Tensor,
        main: Tensor,
        number: int,
        noisies: list[list[Tensor] | None],
        others: list[list[Tensor] | None],
        constant: bool,
    ) -> Shadow:
        shadow = Shadow(main, noisies[number], others[number], constant=constant)
        if tensor.dtype not in WIDE:
            shadow.noisy = None
        if call.facts.view and call.shadows:
            shadow.base = call.shadows[0]
            shadow.view = call.viewer(number)
        shadow.exact = (call.exact or tensor.dtype not in WIDE) and all(s.exact for s in call.shadows)
        return shadow

    def _after_write(self, call: Call, tensor: Tensor, shadow: Shadow, rounded: Tensor | None) -> None:
        """The in-place operators above have written `main`, `noisy` and `other` already; only noise is missing."""
        if tensor.dtype in WIDE:
            self._finish(call, shadow, tensor, rounded, 0, [shadow.main])

    def _finish(
        self, call: Call, shadow: Shadow, tensor: Tensor, rounded: Tensor | None, number: int, results: list[Tensor]
    ) -> None:
        """Saturates to the range of the real type, takes over real decisions, adds this operator's own noise."""
        if tensor.dtype not in WIDE:
            adopt_decision(call, shadow, tensor, self._draws)
            return
        name = dtype_name(tensor.dtype)
        self.result.types.add(name)
        if self._known is not None and call.facts.name == "_to_copy" and self._known.is_foreign(name):
            wide = shadow.main.dtype
            shadow.main = shadow.main.to(tensor.dtype).to(wide)
            shadow.noisy = None if shadow.noisy is None else [run.to(tensor.dtype).to(wide) for run in shadow.noisy]
        if not call.exact or call.facts.name == "_to_copy":
            saturate(shadow, name)
        if call.facts.jumps:
            adopt_decision(call, shadow, tensor, self._draws)
        if call.exact or not self._draws.total or shadow.main.dtype not in (torch.float64, torch.complex128):
            return
        if call.facts.jumps and call.facts.name not in ("remainder", "fmod"):
            return
        self._injector.own(call, shadow, name, rounded, results, first=number == 0)


def _with_limits(args: Any, kwargs: dict[str, Any]) -> dict[str, Any]:
    """Returns the arguments of `nan_to_num` with the limits of the real type, which float64 would widen."""
    if args[0].dtype not in WIDE or args[0].is_complex():
        return kwargs
    limits = torch.finfo(args[0].dtype)
    given = dict(zip(("nan", "posinf", "neginf"), args[1:], strict=False)) | kwargs
    missing = {"posinf": limits.max, "neginf": limits.min}
    return kwargs | {name: value for name, value in missing.items() if given.get(name) is None and len(args) < 3}


def record(
    run: Callable[[], Any],
    *,
    draws: Draws,
    rng: np.random.Generator,
    inputs: tuple[Tensor, ...],
    parameters: WeakTensorKeyDictionary | None = None,
    known: KnownNumbers | None = None,
    recorder: Recorder | None = None,
    begin: Callable[[Tape], None] | None = None,
) -> tuple[Any, Tape]:
    """Runs a program under a tape.

    Args:
        run: the call of the program; its outputs stay in the real type.
        draws: noisy runs.
        rng: source of noise.
        inputs: the tensors in its arguments.
        parameters: cache of float64 parameters, shared between runs of the same module.
        known: for a candidate, what the source holds; casts to other types are carried out.
        recorder: receives the operators.
        begin: is told of the tape before the run.

    Returns:
        The outputs of the real run, and the tape that knows their companions.
    """
    tape = Tape(draws=draws, rng=rng, inputs=inputs, parameters=parameters, known=known, recorder=recorder)
    if begin is not None:
        begin(tape)
    with _plain_kernels(), torch.no_grad(), tape:
        return run(), tape


@contextlib.contextmanager
def _plain_kernels() -> Iterator[None]:
    """Keeps fused kernels that have no float64 form away; the plain operators mean the same."""
    fast_path = torch.backends.mha.get_fastpath_enabled()
    library = torch._C._get_mkldnn_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    torch._C._set_mkldnn_enabled(False)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(fast_path)
        torch._C._set_mkldnn_enabled(library)
