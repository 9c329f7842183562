"""Draws input sets: most silent faults are right at the example and wrong elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueport.core.domain import DomainKind
from trueport.inputs.confined import drawn_within, largest_number, typed, wide, within
from trueport.inputs.spec import LeafSpec

Array = NDArray[Any]

REGIMES = ("zeros", "constant", "large", "small", "negative", "halves")
"""Edge regimes of floating-point inputs; integer inputs have the ends of their observed range instead.

`halves` are multiples of one half, where rounding modes and strict comparisons differ.
"""
LARGE, SMALL = 100.0, 1e-3


@dataclass(frozen=True, eq=False)
class InputSet:
    """One set of tensor inputs, by leaf, in the order in which the subject's arguments flatten.

    Attributes:
        label: says where it comes from, for people and records.
        regime: `example`, `given`, `redrawn`, `size`, `nonfinite` or an edge regime.
        arrays: one per tensor leaf.
        sizes: symbol -> size where the sizes are not the example's.
    """

    label: str
    regime: str
    arrays: tuple[Array, ...]
    sizes: tuple[tuple[str, int], ...] = ()


def draw_inputs(
    leaves: Sequence[LeafSpec],
    *,
    samples: int,
    seed: int,
    given: Sequence[tuple[Array, ...]] = (),
    nonfinite: bool = True,
) -> list[InputSet]:
    """Returns the input sets of a check, the example first, without repetitions.

    Args:
        leaves: the tensor inputs.
        samples: how many sets of redrawn values of the example's own size.
        seed: of all draws.
        given: further sets from the user.
        nonfinite: whether to add NaN and infinity as a last regime.
    """
    rng = np.random.default_rng([seed, 0x7275])
    sizes = _example_sizes(leaves)
    sets = [InputSet("example", "example", tuple(leaf.example for leaf in leaves))]
    sets += [InputSet(f"given {i + 1}", "given", arrays) for i, arrays in enumerate(given)]
    for number in range(samples):
        sets.append(
            InputSet(f"redrawn {number + 1}", "redrawn", tuple(_drawn(s, s.example.shape, sizes, rng) for s in leaves))
        )
    for regime in REGIMES:
        sets.append(InputSet(regime, regime, tuple(_edge_drawn(s, regime, sizes, rng) for s in leaves)))
    sets += _sized(leaves, rng)
    if nonfinite and any(_takes_nonfinite(leaf) for leaf in leaves):
        sets.append(InputSet("NaN and infinity", "nonfinite", tuple(_nonfinite(s, rng) for s in leaves)))
    return list(_distinct(sets))


def fewer(sets: Sequence[InputSet]) -> list[InputSet]:
    """Returns the sets of a large model, in which every run is dear: at least three where there are as many.

    The example, what the user gave, the first redrawn set, large values, and the smallest and the largest sizes, of
    those with no more than twice the example's elements where there are any: a run takes as long as it has elements.
    """
    sizes = [s for s in sets if s.regime == "size"]
    sizes = [s for s in sizes if _elements(s) <= 2 * _elements(sets[0])] or sizes[:1]
    chosen = {id(s) for s in (*sizes[:1], *sizes[-1:])}
    chosen |= {id(s) for s in sets if s.regime in ("example", "given", "large")}
    chosen |= {id(s) for s in [s for s in sets if s.regime == "redrawn"][:1]}
    return [s for s in sets if id(s) in chosen]


def _elements(inputs: InputSet) -> int:
    return sum(array.size for array in inputs.arrays)


def redraw(leaves: Sequence[LeafSpec], *, number: int, seed: int) -> InputSet:
    """Returns one more set of redrawn values of the example's own size.

    Args:
        leaves: the tensor inputs.
        number: which one, counted from 1 after those of `draw_inputs`.
        seed: of all draws.
    """
    rng = np.random.default_rng([seed, 0x7275, number])
    sizes = _example_sizes(leaves)
    arrays = tuple(_drawn(leaf, leaf.example.shape, sizes, rng) for leaf in leaves)
    return InputSet(f"drawn again {number}", "redrawn", arrays)


def _distinct(sets: Iterable[InputSet]) -> Iterable[InputSet]:
    seen: set[tuple[Any, ...]] = set()
    for item in sets:
        key = tuple((a.shape, a.tobytes()) for a in item.arrays)
        if key not in seen:
            seen.add(key)
            yield item


# ---------------------------------------------------------------------- domains and types


def _is_kept(leaf: LeafSpec) -> bool:
    """Whether a leaf is not drawn anew: a setting of an operator, or a list."""
    return leaf.domain is not None and leaf.domain.fixed


def _drawn(leaf: LeafSpec, shape: tuple[int, ...], sizes: Mapping[str, int], rng: np.random.Generator) -> Array:
    """Returns values like the example's that the operators behind the input accept, in the input's own type."""
    if _is_kept(leaf):
        return leaf.example
    if leaf.example.dtype.kind not in "biufcV":
        return np.asarray(rng.choice(leaf.example.ravel(), size=shape)) if leaf.example.size else leaf.example
    if leaf.domain is not None and leaf.example.dtype.kind != "b" and not (
        leaf.is_counter and shape != leaf.example.shape
    ):  # fmt: skip
        covering = drawn_within(leaf.domain, shape, leaf.example.dtype, sizes, rng)
        if covering is not None:
            return covering
    drawn = typed(_redraw(_widened(leaf), shape, rng), leaf.example.dtype)
    return drawn if leaf.domain is None else within(drawn, leaf.domain, sizes)


def _edge_drawn(leaf: LeafSpec, regime: str, sizes: Mapping[str, int], rng: np.random.Generator) -> Array:
    """Returns the values of an edge regime, moved into the domain of the input."""
    if _is_kept(leaf) or leaf.example.dtype.kind not in "biufcV":
        return leaf.example
    made = typed(_edge(_widened(leaf), regime, rng), leaf.example.dtype)
    return made if leaf.domain is None else within(made, leaf.domain, sizes)


def _widened(leaf: LeafSpec) -> LeafSpec:
    """Returns the leaf with an example of a type of NumPy's own; float16 is one."""
    if leaf.example.dtype.kind != "V" and leaf.example.dtype.itemsize > 1:
        return leaf
    held = wide(leaf.example)
    return leaf if held is leaf.example else replace(leaf, example=held)


def _takes_nonfinite(leaf: LeafSpec) -> bool:
    """Whether NaN and infinity may be put into a leaf; a grid of NaN is read outside of its image."""
    if leaf.domain is not None and (leaf.domain.fixed or leaf.domain.kind is not DomainKind.RANGE):
        return False
    return leaf.is_float and bool(np.isnan(np.asarray(np.nan).astype(leaf.example.dtype)))


def _example_sizes(leaves: Sequence[LeafSpec]) -> dict[str, int]:
    """Returns symbol -> size at the example."""
    return {
        axis.symbol: (leaf.example.shape[axis.axis] - axis.offset) // axis.scale
        for leaf in leaves
        for axis in leaf.axes.values()
    }


# ---------------------------------------------------------------------- values


def _redraw(leaf: LeafSpec, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """Returns values of the same kind as the example's: same type, range, sign and scale."""
    values = leaf.example
    if leaf.is_counter and shape != values.shape:
        return _resized(leaf, shape)
    if values.dtype.kind == "b":
        return _mask(shape, float(values.mean()) if values.size else 0.5, rng)
    if values.size == 0:
        return np.zeros(shape, values.dtype)
    if leaf.is_integer_mask:
        return _mask(shape, float(values.mean()), rng).astype(values.dtype)
    if values.dtype.kind in "iu":
        low, high = int(values.min()), int(values.max())
        if low == high:
            # One number tells no range; what may be an index or a length may be smaller, down to nothing.
            low, high = min(low, 0), max(high, 1)
        widest = np.uint64 if values.dtype.kind == "u" else np.int64
        return rng.integers(low, high, size=shape, dtype=widest, endpoint=True).astype(values.dtype)
    if leaf.is_mask:
        return np.asarray(rng.choice(values.ravel(), size=shape)).astype(values.dtype)
    if values.dtype.kind == "c":
        parts = [_redraw_float(part, shape, rng) for part in (values.real, values.imag)]
        return np.asarray(parts[0] + 1j * parts[1]).astype(values.dtype)
    return _redraw_float(values, shape, rng)


def _redraw_float(values: Array, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    finite = values[np.isfinite(values)].astype(np.float64)
    if finite.size == 0:
        return np.zeros(shape, values.dtype)
    low, high, mean, std = finite.min(), finite.max(), finite.mean(), finite.std()
    scale = std if std > 0 else (abs(mean) / 2 or 1.0)
    drawn = mean + scale * rng.standard_normal(shape)
    if low >= 0:
        drawn = np.abs(drawn)
    if low >= 0 and high <= 1:
        drawn = rng.random(shape)
    elif high <= 0:
        drawn = -np.abs(drawn)
    return _held(drawn, values.dtype)


def _held(drawn: Array, dtype: np.dtype[Any]) -> Array:
    """Returns the numbers in their type; those beyond its range become its largest ones, not infinite."""
    largest = largest_number(dtype)
    return np.asarray(np.clip(drawn, -largest, largest)).astype(dtype)


def _mask(shape: tuple[int, ...], share: float, rng: np.random.Generator) -> Array:
    """Returns a boolean mask that leaves at least one True in each row, as masks of real models do."""
    drawn = np.asarray(rng.random(shape) < min(max(share, 0.3), 0.8))
    if drawn.ndim and drawn.shape[-1]:
        drawn[..., 0] |= ~drawn.any(axis=-1)
    return drawn


def _edge(leaf: LeafSpec, regime: str, rng: np.random.Generator) -> Array:
    values = leaf.example
    if leaf.is_integer_mask:
        return values
    if values.dtype.kind in "iu" and values.size:
        if regime == "small" and values.min() > 0:
            # Zero is the padding of token ids, and the first index of everything.
            return np.where(rng.random(values.shape) < 0.5, values, 0).astype(values.dtype)
        end = {"zeros": values.min(), "constant": values.max()}.get(regime)
        return np.full_like(values, end) if end is not None else _redraw(leaf, values.shape, rng)
    if values.dtype.kind != "f" or leaf.is_mask or values.size == 0:
        return values
    fresh = _redraw_float(values, values.shape, rng).astype(np.float64)
    with np.errstate(over="ignore"):
        made = {
            "zeros": np.zeros_like(fresh),
            "constant": np.full_like(fresh, fresh.mean() or 1.0),
            "large": np.clip(fresh * LARGE, -6e4, 6e4) if values.dtype.itemsize == 2 else fresh * LARGE,
            "small": fresh * SMALL,
            "negative": -np.abs(fresh),
            "halves": np.rint(4 * fresh) / 2,
        }[regime]
        return _held(made, values.dtype)


def _nonfinite(leaf: LeafSpec, rng: np.random.Generator) -> Array:
    values = leaf.example
    if not _takes_nonfinite(leaf) or values.size == 0:
        return values
    result = values.copy().ravel()
    count = max(1, values.size // 16)
    places = rng.choice(values.size, size=min(values.size, 3 * count), replace=False)
    for part, special in zip(np.array_split(places, 3), (np.nan, np.inf, -np.inf), strict=True):
        result[part] = special
    return result.reshape(values.shape)


# ---------------------------------------------------------------------- sizes


def _sized(leaves: Sequence[LeafSpec], rng: np.random.Generator) -> list[InputSet]:
    """Returns sets in which each symbol alone, and all together, take the sizes 1, 2, an odd and a larger one."""
    axes = [axis for leaf in leaves for axis in leaf.axes.values()]
    present = _example_sizes(leaves)
    symbols = sorted({axis.symbol for axis in axes})
    choices = {symbol: _sizes(symbol, leaves) for symbol in symbols}
    plans: list[dict[str, int]] = []
    rounds = max((len(sizes) for sizes in choices.values()), default=0)
    plans += [{s: sizes[i % len(sizes)] for s, sizes in choices.items()} for i in range(rounds)]
    if len(symbols) > 1:
        plans += [{symbol: choices[symbol][-1]} for symbol in symbols]
        plans.append({s: sizes[(i + 1) % len(sizes)] for i, (s, sizes) in enumerate(choices.items())})
    sets = []
    for plan in plans:
        arrays = tuple(_drawn(leaf, _shape(leaf, plan), present | plan, rng) for leaf in leaves)
        label = "size " + ", ".join(f"{symbol}={size}" for symbol, size in plan.items())
        sets.append(InputSet(label, "size", arrays, tuple(plan.items())))
    return sets


def _sizes(symbol: str, leaves: Sequence[LeafSpec]) -> list[int]:
    """Returns the sizes of a symbol that its range allows, the smallest first."""
    axes = [(leaf, axis) for leaf in leaves for axis in leaf.axes.values() if axis.symbol == symbol]
    example = max((leaf.example.shape[a.axis] - a.offset) // a.scale for leaf, a in axes)
    low = max(a.minimum for _, a in axes)
    highs = [a.maximum for _, a in axes if a.maximum is not None]
    high = min(highs) if highs else None
    odd = example + 1 if example % 2 == 0 else example + 2
    larger = 2 * example + 3
    wanted = dict.fromkeys([1, 2, odd, larger])
    allowed = [s for s in wanted if s >= low and (high is None or s <= high)]
    if not allowed or allowed == [example]:
        allowed = sorted({low, *([high] if high is not None else [])})
    return allowed


def _shape(leaf: LeafSpec, plan: dict[str, int]) -> tuple[int, ...]:
    shape = list(leaf.example.shape)
    for axis in leaf.axes.values():
        if axis.symbol in plan:
            shape[axis.axis] = axis.scale * plan[axis.symbol] + axis.offset
    return tuple(shape)


def _resized(leaf: LeafSpec, shape: tuple[int, ...]) -> Array:
    """Returns a counter of another length, starting where the example's rows start."""
    values = leaf.example
    start = values.min()
    count = np.arange(start, start + shape[-1], dtype=values.dtype)
    return np.ascontiguousarray(np.broadcast_to(count, shape))
