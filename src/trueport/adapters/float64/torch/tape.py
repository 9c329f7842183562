"""The tape: a real eager run with a float64 companion for every tensor, kept in step operator by operator.

A dispatch mode sees the run's own operators, branches and literals, so nothing has to be captured, and what the source
says about types (`finfo(x.dtype)`, casts, integer arithmetic) stays as it is. Beside each operator of the real run the
same operator is evaluated in float64: once without noise, and once for each draw of rounding noise. The rounding error
that this operator really makes is measured on the way, on the same inputs.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.weak import WeakIdKeyDictionary, WeakTensorKeyDictionary

from trueport.adapters.float64.constants import KnownNumbers
from trueport.adapters.float64.torch.jumps import ALTERNATES, continuous_part, selection_dim, shifted, singular
from trueport.adapters.float64.torch.kernel_noise import extra_noise
from trueport.adapters.float64.torch.observability import Entry, Recorder, source_line
from trueport.adapters.float64.torch.operators import Operator, describe
from trueport.adapters.float64.torch.shadow import WIDE, Shadow, widen
from trueport.oracle.floor import elementwise_floor
from trueport.oracle.noise import Draws, draw, local_noise, meaning_scale
from trueport.oracle.thresholds import THRESHOLDS
from trueport.oracle.units import FLOAT_TYPES, FloatType


def dtype_name(dtype: torch.dtype) -> str:
    """Returns the name without the `torch.` in front."""
    return str(dtype).removeprefix("torch.")


@dataclass
class TapeResult:
    """What a run left behind besides its outputs.

    Attributes:
        unsupported: operators without a float64 kernel; from there on the real values stand in.
        random: operators that drew random numbers.
        literals: floating-point literals of the run, as their own type holds them.
        types: names of the floating-point types of values of the run.
        undecidable: a branch of the model or the shape of a tensor hangs on a decision that rounding takes.
        operators: number of operators seen.
    """

    unsupported: dict[str, int] = field(default_factory=dict)
    random: set[str] = field(default_factory=set)
    literals: set[float] = field(default_factory=set)
    types: set[str] = field(default_factory=set)
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
        self._rng = rng
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
        if facts.random:
            self.result.random.add(str(func))
        tensors = list(_tensors(args)) + list(_tensors(kwargs.values()))
        shadows = [self.shadow(t) for t in tensors]
        if facts.silent:
            return func(*args, **kwargs)
        if facts.name == "_local_scalar_dense":
            return self._scalar(func, args[0], shadows[0])
        call = _Call(func, facts, args, facts.complete(args, kwargs), tensors, shadows)
        floating = any(t.dtype in WIDE for t in tensors)
        trivial = not floating and all(
            s.main is t or (s.exact and s.other is None) for s, t in zip(shadows, tensors, strict=True)
        )
        if facts.mutates and not trivial:
            self._prepare_write(call)
        local = None if trivial or call.exact or all(s.exact for s in shadows) else self._local(call)
        before = None if trivial else self._evaluate(call)
        real = func(*args, **kwargs)
        if before is None or not any(True for _ in _tensors([real])):
            self._register_trivial(call, real, trivial=trivial)
            return real
        self._register(call, real, before, local if local is not None else real)
        if self._recorder is not None:
            self._record(self._recorder, call, real)
        return real

    def _record(self, recorder: Recorder, call: _Call, real: Any) -> None:
        results = [self.shadow(t) for t in _tensors([real])]
        literal = self._literal if any(t.dtype in WIDE for t in call.tensors) else _identity

        def again(table: dict[int, Tensor]) -> Any:
            return call.func(*_replace(call.args, table, literal), **_replace_kwargs(call.kwargs, table, literal))

        constant = all(s.constant for s in call.shadows)
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

    def _scalar(self, func: Any, tensor: Tensor, shadow: Shadow) -> Any:
        """A tensor becomes a number of the program: the float64 one, and a branch may hang on it."""
        if shadow.other is not None and any(not torch.equal(o, shadow.main) for o in shadow.other):
            self.result.undecidable = True
        if tensor.dtype in WIDE and not tensor.is_complex():
            value = float(shadow.main.item())
            self._item_values.add(value)
            return value
        return func(tensor)

    def _prepare_write(self, call: _Call) -> None:
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
                shadow.constant = shadow.constant and all(s.constant for s in call.shadows)
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
            depends = not all(s.constant for s in call.shadows)
            if depends:
                shadow.constant = shadow.root().constant = False

    def _local(self, call: _Call) -> Any:
        """The operator in its own type on the float64 run's inputs, rounded; None where that fails."""
        rounded = {id(t): _narrow(s.main, t) for t, s in zip(call.tensors, call.shadows, strict=True)}
        with contextlib.suppress(Exception):
            return call.func(*_replace(call.args, rounded), **_replace_kwargs(call.kwargs, rounded))
        return None

    def _evaluate(self, call: _Call) -> _Evaluated | None:
        """The operator in float64, with and without noise, and on the alternates."""
        literal = self._literal if any(t.dtype in WIDE for t in call.tensors) else _identity
        try:
            main = self._apply(call, [s.main for s in call.shadows], literal)
        except Exception:  # noqa: BLE001 - any kernel may lack any type; the result says which
            self.result.unsupported[str(call.func)] = self.result.unsupported.get(str(call.func), 0) + 1
            return None
        draws = self._draws.total
        noisy: list[Any] | None = None
        if draws and any(s.noisy is not None for s in call.shadows) and not call.facts.jumps:
            noisy = [
                self._apply(call, [s.main if s.noisy is None else s.noisy[k] for s in call.shadows], literal)
                for k in range(draws)
            ]
        elif draws and call.facts.jumps:
            noisy = self._noisy_jump(call, main)
        return _Evaluated(main, noisy, self._other(call, literal))

    def _apply(self, call: _Call, values: list[Tensor], literal: Callable[[Any], Any]) -> Any:
        table = {id(t): v for t, v in zip(call.tensors, values, strict=True)}
        return call.func(*_replace(call.args, table, literal), **_replace_kwargs(call.kwargs, table, literal))

    def _literal(self, value: float) -> float:
        """A literal as float32 holds it: kernels of all narrower types compute with float32 scalars."""
        if value in self._item_values:
            return value
        with np.errstate(over="ignore"):
            rounded = float(np.float32(value))
        self.result.literals.add(rounded)
        return rounded

    def _noisy_jump(self, call: _Call, main: Any) -> list[Any] | None:
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
                call.facts.name, main, list(_replace(call.args, tables[0])), list(_replace(call.args, table))
            )
            if part is None:
                return None
            result.append(part)
        return result

    # ------------------------------------------------------------------ jumps

    def _other(self, call: _Call, literal: Callable[[Any], Any]) -> list[Any] | None:
        """The operator on the alternates; at a jump the alternates are pushed across it."""
        inherited = any(s.other is not None for s in call.shadows)
        margins = self._margins(call) if self._draws.arithmetic and _jumps(call) else None
        if not inherited and margins is None:
            return None
        results = []
        try:
            for number in range(ALTERNATES):
                values = [s.main if s.other is None else s.other[number] for s in call.shadows]
                if margins is not None:
                    values = self._pushed(call, values, margins, number)
                results.append(self._apply(call, values, literal))
        except Exception:  # noqa: BLE001 - an alternate may have another shape than the program expects
            self.result.undecidable = True
            return None
        return results

    def _margins(self, call: _Call) -> list[Tensor | None] | None:
        """How near to a jump is too near, per argument; None where no argument has any noise and no tie matters."""
        found = False
        margins: list[Tensor | None] = []
        for tensor, shadow in zip(call.tensors, call.shadows, strict=True):
            if tensor.dtype not in WIDE or shadow.main.is_complex():
                margins.append(None)
                continue
            if shadow.noisy is None:
                margins.append(torch.zeros_like(shadow.main))
            else:
                runs = [run.numpy() for run in shadow.noisy[: self._draws.arithmetic]]
                floor = THRESHOLDS.margin * elementwise_floor(shadow.main.numpy(), runs)
                margins.append(torch.from_numpy(np.asarray(floor)))
                found = found or bool(floor.any())
        ties = call.facts.selects and call.facts.name not in ("argmax", "argmin")
        return margins if found or (ties and any(m is not None for m in margins)) else None

    def _pushed(self, call: _Call, values: list[Tensor], margins: list[Tensor | None], number: int) -> list[Tensor]:
        dim = selection_dim(call.facts.name, call.args, call.kwargs)
        ties = call.facts.name not in ("argmax", "argmin") and not call.kwargs.get("stable", False)
        return [
            value
            if margin is None or margin.shape != value.shape
            else shifted(call.facts.name, position, value, margin, number, dim, selects=call.facts.selects, ties=ties)
            for position, (value, margin) in enumerate(zip(values, margins, strict=True))
        ]

    # ------------------------------------------------------------------ results

    def _register_trivial(self, call: _Call, real: Any, *, trivial: bool) -> None:
        """Results that are their own companions: integers from integers, or values without a float64 kernel."""
        constant = all(s.constant for s in call.shadows)
        for tensor in _tensors([real]):
            if any(tensor is t for t in call.tensors):
                continue
            if tensor.dtype in WIDE:
                shadow = Shadow(widen(tensor), exact=True, constant=constant)
                if not call.tensors:
                    self._inject_factory(shadow, tensor)
                elif not trivial:
                    self._inject_stand_in(shadow, tensor)
                self._shadows[tensor] = shadow
            elif not constant:
                self._shadows[tensor] = Shadow(tensor, exact=True)

    def _inject_factory(self, shadow: Shadow, tensor: Tensor) -> None:
        """Values such as those of `linspace` may be computed anew, so they are good to a last place only."""
        if tensor.is_complex() or not self._draws.total:
            return
        whole = shadow.main == torch.round(shadow.main)
        if bool(whole.all()):
            return
        name = dtype_name(tensor.dtype)
        noise = local_noise(shadow.main.numpy(), None, name, None, inexact=True)
        self._inject(shadow, torch.from_numpy(noise), name, constant=True)

    def _inject_stand_in(self, shadow: Shadow, tensor: Tensor) -> None:
        """A real value stands in for a float64 one that could not be had: it carries its own rounding in both lanes."""
        if not self._draws.total:
            return
        name = dtype_name(tensor.dtype)
        noise = 8 * local_noise(shadow.main.numpy(), None, name, None, inexact=True)
        self._inject(shadow, torch.from_numpy(noise), name, constant=True)

    def _register(self, call: _Call, real: Any, evaluated: _Evaluated, local: Any) -> None:
        reals = list(_tensors([real]))
        mains = list(_tensors([evaluated.main]))
        noisies = _columns(evaluated.noisy, len(reals))
        others = _columns(evaluated.other, len(reals))
        locals_ = list(_tensors([local])) if local is not None else []
        constant = all(s.constant for s in call.shadows)
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
        call: _Call,
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

    def _after_write(self, call: _Call, tensor: Tensor, shadow: Shadow, rounded: Tensor | None) -> None:
        """The in-place operators above have written `main`, `noisy` and `other` already; only noise is missing."""
        if tensor.dtype in WIDE:
            self._finish(call, shadow, tensor, rounded, 0, [shadow.main])

    def _finish(
        self, call: _Call, shadow: Shadow, tensor: Tensor, rounded: Tensor | None, number: int, results: list[Tensor]
    ) -> None:
        """Saturates to the range of the real type, takes over real decisions, adds this operator's own noise."""
        if tensor.dtype not in WIDE:
            self._adopt_decision(shadow, tensor, call)
            return
        name = dtype_name(tensor.dtype)
        self.result.types.add(name)
        if self._known is not None and call.facts.name == "_to_copy" and self._known.is_foreign(name):
            wide = shadow.main.dtype
            shadow.main = shadow.main.to(tensor.dtype).to(wide)
            shadow.noisy = None if shadow.noisy is None else [run.to(tensor.dtype).to(wide) for run in shadow.noisy]
        if not call.exact or call.facts.name == "_to_copy":
            _saturate(shadow, name)
        if call.facts.jumps:
            self._adopt_decision(shadow, tensor, call)
        if call.exact or not self._draws.total or shadow.main.dtype not in (torch.float64, torch.complex128):
            return
        if call.facts.jumps and call.facts.name not in ("remainder", "fmod"):
            return
        extra = None
        if number == 0 and not call.facts.mutates:
            accumulator = FLOAT_TYPES["float32" if name in ("float16", "bfloat16") else name].unit_roundoff
            extra = extra_noise(call.facts.name, results, *call.wide_arguments(), accumulator)
        real = None
        if rounded is not None and rounded.shape == shadow.main.shape:
            real = to_numpy(rounded.to(shadow.main.dtype))
        noise = local_noise(
            to_numpy(shadow.main), real, name, extra, inexact=not call.facts.correctly_rounded or real is None
        )
        if number == 0:
            noise = _absorbed(call, noise)
        self._inject(shadow, torch.from_numpy(noise), name, constant=shadow.constant)

    def _adopt_decision(self, shadow: Shadow, tensor: Tensor, call: _Call) -> None:
        """Where the real run decided otherwise than float64, one alternate takes its side."""
        if not _jumps(call) or not self._draws.arithmetic or tensor.shape != shadow.main.shape:
            return
        differs = shadow.main != tensor.to(shadow.main.dtype)
        if not bool(differs.any()):
            return
        if tensor.dtype in WIDE and call.facts.name in ("remainder", "fmod", "frac", "hardshrink"):
            return
        if shadow.other is None:
            shadow.other = [shadow.main.clone() for _ in range(ALTERNATES)]
        keep = differs & (shadow.other[1] == shadow.main)
        shadow.other[1] = torch.where(keep, tensor.to(shadow.main.dtype), shadow.other[1])

    def _inject(self, shadow: Shadow, noise: Tensor, name: str, *, constant: bool) -> None:
        """Adds this operator's noise to every noisy run, in place where the storage is shared with views."""
        if not bool(noise.any()):
            return
        if shadow.noisy is None:
            if shadow.base is None:
                shadow.noisy = [shadow.main.clone() for _ in range(self._draws.total)]
            else:
                shadow.materialize(draws=self._draws.total, others=0)
        assert shadow.noisy is not None
        size = noise.numpy()
        # Float64 evaluations of one program may differ in which intermediate numbers underflow in the real type.
        meaning = size if constant else np.maximum(size * meaning_scale(name), FLOAT_TYPES[name].underflow)
        for k, run in enumerate(shadow.noisy):
            arithmetic = k < self._draws.arithmetic
            coherent = (k if arithmetic else k - self._draws.arithmetic) % 2 == 1
            realization = torch.from_numpy(draw(self._rng, size if arithmetic else meaning, coherent=coherent))
            if run.is_complex():
                other = draw(self._rng, size if arithmetic else meaning, coherent=coherent)
                realization = torch.complex(realization, torch.from_numpy(other))
            run.add_(realization)


@dataclass
class _Evaluated:
    """One operator in float64."""

    main: Any
    noisy: list[Any] | None
    other: list[Any] | None


@dataclass
class _Call:
    """One operator of the real run with the companions of its tensors."""

    func: Any
    facts: Operator
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    tensors: list[Tensor]
    shadows: list[Shadow]

    @property
    def exact(self) -> bool:
        """Whether this call makes no rounding error: a scatter that accumulates does, one that overwrites does not."""
        if "index_put" in self.facts.name:
            return not (self.kwargs.get("accumulate") or (len(self.args) > 3 and self.args[3]))
        return self.facts.exact

    def wide_arguments(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments in float64."""
        table = {id(t): s.main for t, s in zip(self.tensors, self.shadows, strict=True)}
        return _replace(self.args, table), _replace_kwargs(self.kwargs, table)

    def viewer(self, number: int) -> Callable[[Tensor], Tensor]:
        """Returns the function that makes the same view of another tensor of the same shape."""

        def view(base: Tensor) -> Tensor:
            table = {id(self.tensors[0]): base}
            result = self.func(*_replace(self.args, table), **self.kwargs)
            return list(_tensors([result]))[number]

        return view


def _absorbed(call: _Call, noise: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A correctly rounded sum is off by no more than its smaller operand: a mask of -3e38 absorbs and stays itself."""
    if call.facts.name not in ("add", "sub", "rsub") or call.facts.mutates or len(call.args) < 2:
        return noise
    args, kwargs = call.wide_arguments()
    first, second = (np.abs(np.asarray(a.numpy() if isinstance(a, Tensor) else a)) for a in args[:2])
    alpha = kwargs.get("alpha", 1)
    return np.asarray(np.minimum(noise, np.minimum(first, second * abs(alpha))))


def to_numpy(tensor: Tensor) -> np.ndarray[Any, Any]:
    """Returns the values; lazily conjugated or negated views are resolved first."""
    values: np.ndarray[Any, Any] = tensor.resolve_conj().resolve_neg().numpy()
    return values


def _identity(value: Any) -> Any:
    return value


def _jumps(call: _Call) -> bool:
    """Whether the operator decides something from a floating-point argument."""
    if call.facts.jumps or call.facts.selects:
        return True
    if call.facts.name in ("_to_copy", "to"):
        wanted = call.kwargs.get("dtype")
        return wanted is not None and wanted not in WIDE and wanted not in (torch.float64, torch.complex128)
    return False


def _tensors(values: Any) -> Iterator[Tensor]:
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, list | tuple):
            yield from _tensors(value)


def _replace(args: Any, table: dict[int, Tensor], literal: Callable[[Any], Any] = _identity) -> Any:
    """Replaces tensors by identity and passes floating-point literals through `literal`."""
    result = []
    for value in args:
        if isinstance(value, Tensor):
            result.append(table.get(id(value), value))
        elif isinstance(value, list | tuple):
            result.append(_replace(value, table, literal))
        elif isinstance(value, float):
            result.append(literal(value))
        else:
            result.append(value)
    return tuple(result) if isinstance(args, tuple) else result


def _replace_kwargs(
    kwargs: dict[str, Any], table: dict[int, Tensor], literal: Callable[[Any], Any] = _identity
) -> dict[str, Any]:
    """As `_replace`; a requested narrow type becomes the wide one when the tensors are wide."""
    if not kwargs:
        return kwargs
    wide = any(v.dtype in (torch.float64, torch.complex128) for v in table.values()) or literal is not _identity
    result = dict(zip(kwargs, _replace(tuple(kwargs.values()), table, literal), strict=True))
    wanted = result.get("dtype")
    if (wanted in WIDE and wide) or wanted in WIDE:
        result["dtype"] = WIDE[wanted]
    return result


def _narrow(wide: Tensor, like: Tensor) -> Tensor:
    """The float64 value as the real type holds it; always a tensor of its own."""
    return wide.to(like.dtype) if wide.dtype != like.dtype else wide.clone()


def _columns(results: list[Any] | None, width: int) -> list[list[Tensor] | None]:
    """Turns one result per run into one list of runs per output."""
    if results is None:
        return [None] * width
    rows = [list(_tensors([result])) for result in results]
    return [[row[i] for row in rows] for i in range(width)]


def _saturate(shadow: Shadow, name: str) -> None:
    """Applies the real type's range: what rounds beyond its largest number is infinite, what rounds to zero is zero."""
    kind = FLOAT_TYPES[name]
    if shadow.main.is_complex() or shadow.main.dtype != torch.float64 or _far_inside(shadow.main, kind):
        return
    beyond = (shadow.main.abs() > kind.overflow) & torch.isfinite(shadow.main)
    if shadow.other is None and shadow.base is None and bool(beyond.any()):
        # A kernel that holds more than the type does between two operators does not overflow there.
        shadow.other = [shadow.main.clone(), shadow.main.clone()]
    for value in itertools.chain([shadow.main], shadow.noisy or (), (shadow.other or ())[:1]):
        magnitude = value.abs()
        value.masked_fill_((value >= kind.overflow), torch.inf).masked_fill_(value <= -kind.overflow, -torch.inf)
        value.masked_fill_((magnitude <= kind.underflow) & (magnitude > 0), 0.0)


def _far_inside(main: Tensor, kind: FloatType) -> bool:
    """Whether no number is anywhere near the ends of the range, so that no noisy one can be beyond them."""
    if main.numel() == 0:
        return True
    magnitude = main.abs()
    magnitude[magnitude == 0] = 1.0
    low, high = torch.aminmax(magnitude)
    return bool(low > 1e3 * kind.underflow) and bool(high < 1e-3 * kind.overflow)


def record(
    run: Callable[[], Any],
    *,
    draws: Draws,
    rng: np.random.Generator,
    inputs: tuple[Tensor, ...],
    parameters: WeakTensorKeyDictionary | None = None,
    known: KnownNumbers | None = None,
    recorder: Recorder | None = None,
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

    Returns:
        The outputs of the real run, and the tape that knows their companions.
    """
    tape = Tape(draws=draws, rng=rng, inputs=inputs, parameters=parameters, known=known, recorder=recorder)
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
