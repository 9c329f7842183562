"""Discontinuous operators: decided by margin, not by sampling.

An element nearer to a jump than a few local floors may legitimately fall on either side. Two alternates are evaluated
in which every such element is pushed across its jump; what differs at the outputs between them and the main run
depends on a decision that rounding takes. The alternates follow the data flow through every operator without a rule of
their own.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

ALTERNATES = 2


def shifted(
    position: int,
    main: Tensor,
    margin: Tensor,
    number: int,
    dim: int,
    *,
    selects: bool,
    ties: bool,
    largest: bool = True,
) -> Tensor:
    """Returns an argument of a jump pushed towards the other side.

    Args:
        position: which argument; the second of a comparison is pushed against the first.
        main: the argument in float64.
        margin: how near is too near, the same shape, non-negative.
        number: which alternate, 0 or 1.
        dim: along which the operator selects.
        selects: the operator chooses elements by order, so neighbours in that order are swapped.
        ties: equal elements may come in any order.
        largest: the operator prefers large elements.
    """
    if selects and main.dim():
        return _reordered(main, margin, number, dim, ties=ties, largest=largest)
    sign = 1.0 if (position + number) % 2 == 0 else -1.0
    return main + sign * margin


def _reordered(main: Tensor, margin: Tensor, number: int, dim: int, *, ties: bool, largest: bool) -> Tensor:
    """Brings each group of elements that rounding cannot tell apart into another order.

    Alternate 0 reverses every group, alternate 1 rotates it by one place, so that no place keeps its element in both.
    """
    size = main.shape[dim]
    if size < 2:
        return main
    order = torch.argsort(main, dim=dim, descending=largest, stable=True)
    ranked = torch.gather(main, dim, order)
    room = torch.gather(margin, dim, order)
    gap = (ranked.narrow(dim, 0, size - 1) - ranked.narrow(dim, 1, size - 1)).abs()
    reach = room.narrow(dim, 0, size - 1) + room.narrow(dim, 1, size - 1)
    near = (gap <= reach) & ((reach > 0) | ties)
    begins = torch.cat([torch.ones_like(near.narrow(dim, 0, 1)), ~near], dim)
    ends = torch.cat([~near, torch.ones_like(near.narrow(dim, 0, 1))], dim)
    shape = [1] * main.dim()
    shape[dim] = size
    place = torch.arange(size).reshape(shape).expand(main.shape)
    first = torch.where(begins, place, torch.zeros_like(place)).cummax(dim).values
    last = torch.where(ends, place, torch.full_like(place, size - 1)).flip(dim).cummin(dim).values.flip(dim)
    rotated = torch.where(place == last, first, place + 1)
    target = first + last - place if number == 0 else rotated
    # Only the order of these counts: the selected values are taken from the argument itself.
    rank = target.to(main.dtype)
    return torch.zeros_like(main).scatter(dim, order, -rank if largest else rank)


def prefers_large(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Returns whether a selection takes the largest elements first."""
    if name in ("argmin", "min", "kthvalue", "median", "mode", "cummin"):
        return False
    if name in ("sort", "argsort"):
        flags = [a for a in args[1:] if isinstance(a, bool)]
        return bool(kwargs.get("descending", flags[-1] if flags else False))
    if name == "topk":
        return bool(kwargs.get("largest", args[3] if len(args) > 3 else True))
    return True


def reselected(values: Tensor, result: Any, dim: int) -> Any:
    """Returns the selection's result with the values that its indices point at, without the push that swapped them.

    Args:
        values: the argument, not pushed.
        result: (values, indices) of the pushed argument, or indices alone.
        dim: along which the operator selects.
    """
    if not isinstance(result, tuple | list) or len(result) != 2 or not values.dim():
        return result
    indices = result[1]
    if indices.dim() == values.dim():
        return values.gather(dim, indices), indices
    return values.gather(dim, indices.unsqueeze(dim)).squeeze(dim), indices


def selection_dim(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> int:
    """Returns the dimension along which the operator selects; -1 where it is not given."""
    position = 2 if name in ("topk", "kthvalue") else 1
    value = kwargs.get("dim", args[position] if len(args) > position else -1)
    return value if isinstance(value, int) and not isinstance(value, bool) else -1


def continuous_part(name: str, main: Tensor, args: list[Any], noisy: list[Any]) -> Tensor | None:
    """Returns a noisy result that keeps the main run's decisions, or None where the result is nothing but decisions.

    Args:
        name: the operator.
        main: its result without noise.
        args: its positional arguments without noise.
        noisy: the same with noise.
    """
    if name in ("remainder", "fmod"):
        x, y = args[0], args[1]
        quotient = torch.round((torch.as_tensor(x) - main) / y) if isinstance(x, Tensor) else None
        return None if quotient is None else noisy[0] - noisy[1] * quotient
    if name == "frac":
        return noisy[0] - torch.trunc(args[0])
    if name == "hardshrink":
        return torch.where(main != 0, noisy[0], torch.zeros_like(main))
    return None


def singular(name: str, results: list[Tensor]) -> bool:
    """Returns whether a normalization divided by a spread of exactly zero.

    Without an epsilon the normalization of constant values is 0/0: any perturbation gives any result, so whether a
    kernel answers 0 or NaN there is a convention and no meaning.

    Args:
        name: the operator.
        results: its results in float64; the third is the reciprocal of the spread.
    """
    if "norm" not in name or len(results) < 3 or not results[2].is_floating_point():
        return False
    reciprocal = results[2]
    return bool(((reciprocal == 0) | ~torch.isfinite(reciprocal)).any())
