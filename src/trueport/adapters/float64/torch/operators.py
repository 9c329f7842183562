"""What the tape must know about an ATen operator: whether it views, mutates, draws, selects exactly or jumps."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import torch

# Results are elements of an argument, or exact by definition, so no rounding happens here.
_EXACT = frozenset(
    [
        "abs",
        "absolute",
        "amax",
        "amin",
        "aminmax",
        "argsort",
        "as_strided",
        "cat",
        "chunk",
        "clamp",
        "clamp_max",
        "clamp_min",
        "clone",
        "concat",
        "constant_pad_nd",
        "contiguous",
        "copy",
        "copysign",
        "cummax",
        "cummin",
        "detach",
        "diag",
        "diagonal",
        "diagonal_copy",
        "diag_embed",
        "embedding",
        "expand",
        "expand_copy",
        "fill",
        "flip",
        "fmax",
        "fmin",
        "gather",
        "hardtanh",
        "index",
        "index_copy",
        "index_fill",
        "index_put",
        "index_select",
        "kthvalue",
        "lift_fresh",
        "lift_fresh_copy",
        "lift",
        "masked_fill",
        "masked_scatter",
        "masked_select",
        "max",
        "max_pool1d",
        "max_pool2d",
        "max_pool3d",
        "max_pool2d_with_indices",
        "max_pool3d_with_indices",
        "adaptive_max_pool2d",
        "adaptive_max_pool3d",
        "maximum",
        "median",
        "min",
        "minimum",
        "mode",
        "narrow",
        "neg",
        "new_empty",
        "new_full",
        "new_ones",
        "new_zeros",
        "ones_like",
        "permute",
        "pixel_shuffle",
        "pixel_unshuffle",
        "channel_shuffle",
        "reflection_pad1d",
        "reflection_pad2d",
        "reflection_pad3d",
        "relu",
        "repeat",
        "repeat_interleave",
        "replication_pad1d",
        "replication_pad2d",
        "replication_pad3d",
        "reshape",
        "roll",
        "rot90",
        "scatter",
        "select",
        "select_scatter",
        "slice",
        "slice_scatter",
        "sort",
        "split",
        "split_with_sizes",
        "squeeze",
        "stack",
        "t",
        "take",
        "take_along_dim",
        "tile",
        "topk",
        "trace",
        "transpose",
        "tril",
        "triu",
        "unbind",
        "unfold_copy",
        "unsafe_split",
        "unsafe_split_with_sizes",
        "unsafe_chunk",
        "unsqueeze",
        "upsample_nearest1d",
        "upsample_nearest2d",
        "upsample_nearest3d",
        "view",
        "view_as_real",
        "view_as_complex",
        "where",
        "zero",
        "zeros_like",
        "unfold",
        "real",
        "imag",
        "conj",
        "_conj",
        "resolve_conj",
        "resolve_neg",
        "alias",
        "_reshape_alias",
        "_unsafe_view",
        "im2col",
        "threshold",
        "unsafe_index",
        "_unsafe_index",
        "_assert_async",
        "item",
        "_local_scalar_dense",
        "full_like",
        "empty_like",
        "isnan",
        "isinf",
        "sym_size",
        "_unsafe_index_put",
        "block_diag",
        "movedim",
        "swapaxes",
        "hstack",
        "vstack",
        "expand_as",
        "view_as",
        "relu6",
    ]
)
# IEEE 754 rounds these correctly: exact on every element here means exact in every implementation.
_CORRECTLY_ROUNDED = frozenset(
    [
        "add",
        "sub",
        "rsub",
        "mul",
        "div",
        "sqrt",
        "square",
        "addcmul",
        "addcdiv",
        "_to_copy",
        "to",
        "true_divide",
        "lerp",
        "reciprocal",
    ]
)
# The result jumps where an argument crosses a boundary; `jumps` decides by margin.
_JUMPS = frozenset(
    [
        "floor",
        "ceil",
        "round",
        "trunc",
        "fix",
        "sign",
        "sgn",
        "heaviside",
        "eq",
        "ne",
        "lt",
        "le",
        "gt",
        "ge",
        "argmax",
        "argmin",
        "remainder",
        "fmod",
        "floor_divide",
        "bucketize",
        "searchsorted",
        "logical_not",
        "logical_and",
        "logical_or",
        "logical_xor",
        "histc",
        "bincount",
        "frac",
        "signbit",
        "isclose",
        "equal",
        "unique",
        "unique2",
        "_unique2",
        "nonzero",
        "masked_select",
        "hardshrink",
        "softshrink",
        "nextafter",
    ]
)
_SELECTS = frozenset(
    ["argmax", "argmin", "max", "min", "sort", "argsort", "topk", "median", "kthvalue", "mode", "cummax", "cummin"]
)


@dataclass(frozen=True)
class Operator:
    """Facts about one overload.

    Attributes:
        name: without namespace and overload, without the underscore of in-place variants.
        exact: makes no rounding error.
        correctly_rounded: exact wherever its result is representable.
        jumps: is discontinuous in a floating-point argument.
        selects: chooses elements by order.
        mutates: positions of arguments that it writes.
        random: draws random numbers.
        view: returns a view of its first argument.
        silent: returns nothing (assertions).
        defaults: (position, name, value) of floating-point arguments that float32 does not hold exactly; PyTorch drops
            an argument that equals its default before a dispatch mode sees it.
    """

    name: str
    exact: bool
    correctly_rounded: bool
    jumps: bool
    selects: bool
    mutates: tuple[int, ...]
    random: bool
    view: bool
    silent: bool
    defaults: tuple[tuple[int, str, float], ...]

    def complete(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """Returns the keyword arguments with the dropped literals, which are literals of the program all the same."""
        dropped = {name: value for i, name, value in self.defaults if i >= len(args) and name not in kwargs}
        return {**kwargs, **dropped} if dropped else kwargs


@cache
def describe(func: Any) -> Operator:
    """Returns the facts about an ATen overload; cached, since they never change."""
    schema = func._schema
    name = schema.name.split("::")[-1]
    mutates = tuple(i for i, a in enumerate(schema.arguments) if a.alias_info is not None and a.alias_info.is_write)
    if mutates and name.endswith("_") and not name.startswith("__"):
        name = name[:-1]
    view = any(r.alias_info is not None and not r.alias_info.is_write for r in schema.returns)
    rounding_mode = any(a.name == "rounding_mode" for a in schema.arguments)
    return Operator(
        name=name,
        exact=name in _EXACT or view,
        correctly_rounded=name in _CORRECTLY_ROUNDED,
        jumps=name in _JUMPS or (name == "div" and rounding_mode),
        selects=name in _SELECTS,
        mutates=mutates,
        random=torch.Tag.nondeterministic_seeded in func.tags,
        view=view,
        silent=not schema.returns,
        defaults=tuple(
            (i, a.name, a.default_value)
            for i, a in enumerate(schema.arguments)
            if isinstance(a.default_value, float) and float(np.float32(a.default_value)) != a.default_value
        ),
    )
