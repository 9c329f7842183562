"""An architecture of the zoo as data: two classes of transformers, a small configuration, and its inputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class InputSpec:
    """One input of a model.

    Attributes:
        name: the parameter of `forward`.
        kind: `tokens` (integers below `high`), `mask` (zeros and ones, at least one per row), `left-mask` (zeros at
            the beginning), `normal`, or `cache` (a pair of normal tensors for every layer, in a tuple).
        shape: of the example; of one tensor of a cache.
        dynamic: axis to symbol for the sizes that may vary; `past+1` is one more than `past`.
        high: integers are below it.
        layers: of a cache.
    """

    name: str
    kind: str
    shape: tuple[int, ...]
    dynamic: Mapping[int, str]
    high: int = 2
    layers: int = 0


@dataclass(frozen=True)
class Architecture:
    """One entry of the zoo.

    Attributes:
        name: what follows `zoo:hf/`.
        description: one line for people.
        config: class of the configuration in transformers.
        model: class of the model in transformers.
        settings: what the small configuration says; a value that names a class of transformers under the key
            `__class__` becomes a configuration of that class.
        inputs: in the order of the example.
        longest: largest size of the symbols that are limited by the configuration.
        call: what stands for the names of the inputs in `calls.CALLS`, where those do not tell how it is called.
        weights: the entry whose weights it has; its own where it is None.
    """

    name: str
    description: str
    config: str
    model: str
    settings: Mapping[str, Any]
    inputs: tuple[InputSpec, ...]
    longest: Mapping[str, int] = field(default_factory=dict)
    call: tuple[str, ...] = ()
    weights: Architecture | None = None


def tokens(name: str = "input_ids", length: int = 12, high: int = 120, symbol: str | None = "sequence") -> InputSpec:
    """Returns a batch of two rows of token ids; `symbol` None keeps the length fixed."""
    return InputSpec(name, "tokens", (2, length), {0: "batch"} | ({1: symbol} if symbol else {}), high)


def mask(name: str = "attention_mask", length: int = 12, symbol: str | None = "sequence") -> InputSpec:
    """Returns the mask that belongs to `tokens`."""
    return InputSpec(name, "mask", (2, length), {0: "batch"} | ({1: symbol} if symbol else {}))


def next_token(high: int = 120) -> InputSpec:
    """Returns the one token id of a step of decoding."""
    return InputSpec("input_ids", "tokens", (2, 1), {0: "batch"}, high)


def mask_with_past(past: int) -> InputSpec:
    """Returns the mask of a step of decoding, for what is in the cache and the new token."""
    return InputSpec("attention_mask", "left-mask", (2, past + 1), {0: "batch", 1: "past+1"})


def cache(layers: int, heads: int, past: int, width: int) -> InputSpec:
    """Returns keys and values of every layer."""
    return InputSpec("past_key_values", "cache", (2, heads, past, width), {0: "batch", 2: "past"}, layers=layers)


def pixels(size: int = 32, name: str = "pixel_values", channels: int = 3) -> InputSpec:
    """Returns a batch of two square images."""
    return InputSpec(name, "normal", (2, channels, size, size), {0: "batch"})


def signal(name: str, *shape: int, dynamic: Mapping[int, str] | None = None) -> InputSpec:
    """Returns standard-normal values of the shape, whose first axis is the batch."""
    return InputSpec(name, "normal", shape, dynamic or {0: "batch"})
