"""One operator of the real run with the companions of its tensors, and how it is evaluated on other values."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from trueport.adapters.float64.torch.operators import Operator
from trueport.adapters.float64.torch.shadow import WIDE, Shadow


@dataclass
class Evaluated:
    """One operator in float64."""

    main: Any
    noisy: list[Any] | None
    other: list[Any] | None


@dataclass
class Call:
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
        return replaced(self.args, table), replaced_kwargs(self.kwargs, table)

    def viewer(self, number: int) -> Callable[[Tensor], Tensor]:
        """Returns the function that makes the same view of another tensor of the same shape."""

        def view(base: Tensor) -> Tensor:
            table = {id(self.tensors[0]): base}
            result = self.func(*replaced(self.args, table), **self.kwargs)
            return list(tensors_in([result]))[number]

        return view

    def apply(self, values: list[Tensor], literal: Callable[[Any], Any]) -> Any:
        """Returns the operator's result on other values of its tensors."""
        table = {id(t): v for t, v in zip(self.tensors, values, strict=True)}
        return self.func(*replaced(self.args, table, literal), **replaced_kwargs(self.kwargs, table, literal))

    @property
    def constant(self) -> bool:
        """Whether nothing of it depends on the model's inputs."""
        return all(s.constant for s in self.shadows)


def to_numpy(tensor: Tensor) -> np.ndarray[Any, Any]:
    """Returns the values; lazily conjugated or negated views are resolved first."""
    values: np.ndarray[Any, Any] = tensor.resolve_conj().resolve_neg().numpy()
    return values


def identity(value: Any) -> Any:
    """Returns the value: literals of programs without narrow types stay as they are."""
    return value


def decides(call: Call) -> bool:
    """Whether the operator decides something from a floating-point argument."""
    if call.facts.jumps:
        return True
    if call.facts.selects:
        # Without a dimension, or of two tensors, these give values alone, which are continuous.
        values_alone = call.facts.name in ("max", "min", "median") and "dim" not in call.kwargs
        return not (values_alone and (len(call.args) == 1 or isinstance(call.args[1], Tensor)))
    if call.facts.name in ("_to_copy", "to"):
        wanted = call.kwargs.get("dtype")
        return wanted is not None and wanted not in WIDE and wanted not in (torch.float64, torch.complex128)
    return False


def tensors_in(values: Any) -> Iterator[Tensor]:
    """Yields the tensors among the values, lists and tuples opened."""
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, list | tuple):
            yield from tensors_in(value)


def replaced(args: Any, table: dict[int, Tensor], literal: Callable[[Any], Any] = identity) -> Any:
    """Replaces tensors by identity and passes floating-point literals through `literal`."""
    result = []
    for value in args:
        if isinstance(value, Tensor):
            result.append(table.get(id(value), value))
        elif isinstance(value, list | tuple):
            result.append(replaced(value, table, literal))
        elif isinstance(value, float):
            result.append(literal(value))
        else:
            result.append(value)
    return tuple(result) if isinstance(args, tuple) else result


def replaced_kwargs(
    kwargs: dict[str, Any], table: dict[int, Tensor], literal: Callable[[Any], Any] = identity
) -> dict[str, Any]:
    """As `_replace`; a requested narrow type becomes the wide one when the tensors are wide."""
    if not kwargs:
        return kwargs
    wide = any(v.dtype in (torch.float64, torch.complex128) for v in table.values()) or literal is not identity
    result = dict(zip(kwargs, replaced(tuple(kwargs.values()), table, literal), strict=True))
    wanted = result.get("dtype")
    if (wanted in WIDE and wide) or wanted in WIDE:
        result["dtype"] = WIDE[wanted]
    return result


def narrowed(wide: Tensor, like: Tensor) -> Tensor:
    """The float64 value as the real type holds it; always a tensor of its own."""
    return wide.to(like.dtype) if wide.dtype != like.dtype else wide.clone()


def columns(results: list[Any] | None, width: int) -> list[list[Tensor] | None]:
    """Turns one result per run into one list of runs per output."""
    if results is None:
        return [None] * width
    rows = [list(tensors_in([result])) for result in results]
    return [[row[i] for row in rows] for i in range(width)]


def dtype_name(dtype: torch.dtype) -> str:
    """Returns the name without the `torch.` in front."""
    return str(dtype).removeprefix("torch.")
