"""Small programs of named nodes, run in float64: a right one, and ones with faults in them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from trueport.core.trace import Follow, See, TracedNode, TracedRun

Function = Callable[..., Any]


@dataclass(frozen=True)
class Toy:
    """Nodes with what they compute, and the inputs."""

    nodes: tuple[tuple[TracedNode, Function], ...]
    feeds: Mapping[str, Any]
    outputs: tuple[str, ...]

    def with_(self, name: str, function: Function) -> Toy:
        """Returns the program in which one node computes something else."""
        return replace(self, nodes=tuple((n, function if n.name == name else f) for n, f in self.nodes))

    def renamed(self) -> Toy:
        """Returns the program with other names for all values that nodes make, outputs too."""
        new = {name: f"v{i}" for i, name in enumerate(o for n, _ in self.nodes for o in n.outputs)}
        nodes = tuple(
            (
                replace(
                    n,
                    inputs=tuple(new.get(i, i) for i in n.inputs),
                    outputs=tuple(new[o] for o in n.outputs),
                ),
                f,
            )
            for n, f in self.nodes
        )
        return replace(self, nodes=nodes, outputs=tuple(new[o] for o in self.outputs))

    @property
    def follow(self) -> Follow:
        """Returns what runs it; noisy runs move each floating-point value by some float64 roundings."""

        def run(see: See, draw: int | None) -> list[Any]:
            rng = np.random.default_rng(draw)
            values = dict(self.feeds)
            for node, function in self.nodes:
                made = [np.asarray(function(*(values[i] for i in node.inputs)))]
                if draw is not None and made[0].dtype.kind == "f":
                    made = [made[0] * (1 + 2.0**-50 * rng.standard_normal(made[0].shape))]
                made = see(node, made)
                values.update(zip(node.outputs, made, strict=True))
            return [values[o] for o in self.outputs]

        return run

    def run(self) -> TracedRun:
        """Returns a run with all values."""
        values: dict[str, Any] = {}

        def see(node: TracedNode, outputs: list[Any]) -> list[Any]:
            values.update(zip(node.outputs, outputs, strict=True))
            return outputs

        self.follow(see, None)
        return TracedRun(tuple(n for n, _ in self.nodes), values, {}, self.outputs)


def node(name: str, operator: str, inputs: Sequence[str], function: Function) -> tuple[TracedNode, Function]:
    """Returns a node whose value has its name."""
    return TracedNode(name, operator, tuple(inputs), (name,)), function


def chain() -> Toy:
    """x -> exp -> half -> square -> tanh -> total, with a second branch x -> sin."""
    x = np.random.default_rng(0).standard_normal((4, 6))
    return Toy(
        (
            node("e", "Exp", ["x"], np.exp),
            node("h", "Mul", ["e"], lambda v: v * 0.5),
            node("q", "Pow", ["h"], np.square),
            node("t", "Tanh", ["q"], np.tanh),
            node("s", "Sin", ["x"], np.sin),
            node("y", "Add", ["t", "s"], np.add),
        ),
        {"x": x},
        ("y",),
    )
