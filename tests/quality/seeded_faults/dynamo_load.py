"""Faults of `torch.export`: a capture that changes the program, or a decomposition that means something else."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export import _trace as tracing
from torch.nn import functional

from tests.quality.oracle_cases.fork import Fork
from tests.quality.seeded_faults.fault import (
    ACTIONS,
    DEADLY,
    DYNAMO,
    LOAD_MODEL,
    SeededFault,
    acting_first,
    nothing,
    raise_error,
    replaced,
    seeded,
)
from tests.quality.seeded_faults.subjects import NETWORK, of, with_linear

Edit = Callable[[torch.fx.Node], None]


def _editing_capture(target: Any, edit: Edit) -> Callable[[], Any]:
    """Plants an edit of every captured node that calls `target`."""

    def wrap(original: Callable[..., ExportedProgram]) -> Callable[..., ExportedProgram]:
        def capture(*args: Any, **kwargs: Any) -> ExportedProgram:
            program = original(*args, **kwargs)
            for node in program.graph.nodes:
                if node.op == "call_function" and node.target is target:
                    edit(node)
            program.graph_module.recompile()
            return program

        return capture

    return lambda: replaced(tracing, "_export", wrap)


def _decomposing(target: Any, decomposition: Callable[..., Any]) -> Callable[[], Any]:
    """Plants a decomposition of `target` into every decomposition table that is used."""

    def wrap(original: Callable[..., ExportedProgram]) -> Callable[..., ExportedProgram]:
        def run(self: ExportedProgram, decomp_table: Any = None, *args: Any, **kwargs: Any) -> ExportedProgram:
            table = dict(torch.export.default_decompositions() if decomp_table is None else decomp_table)
            return original(self, table | {target: decomposition}, *args, **kwargs)

        return run

    return lambda: replaced(ExportedProgram, "run_decompositions", wrap)


def _swap_arguments(node: torch.fx.Node) -> None:
    node.args = (node.args[1], node.args[0], *node.args[2:])


def _round_literal(node: torch.fx.Node) -> None:
    node.args = tuple(round(value, 3) if isinstance(value, float) else value for value in node.args)


def _use_first_axis(node: torch.fx.Node) -> None:
    node.args = (node.args[0], 0, *node.args[2:])


def _reverse_order(node: torch.fx.Node) -> None:
    node.args = (node.args[0], list(reversed(node.args[1])), *node.args[2:])


def _silu(x: torch.Tensor) -> torch.Tensor:
    return x * torch.clamp(x / 6 + 0.5, 0, 1)


def _gelu(x: torch.Tensor, approximate: str = "none") -> torch.Tensor:
    return x * torch.sigmoid(1.702 * x)


def _softplus(x: torch.Tensor, beta: float = 1, threshold: float = 20) -> torch.Tensor:
    return torch.log(1.001 + torch.exp(x))


def _fmod(x: torch.Tensor, divisor: float) -> torch.Tensor:
    return torch.remainder(x, divisor)


def _raising(*args: Any, **kwargs: Any) -> Any:
    raise_error()


@contextmanager
def _broken_tracer(action: str) -> Iterator[None]:
    with replaced(tracing, "_export", acting_first(ACTIONS[action])):
        yield


def _wrong(name: str, plant: Any, build: Any, note: str) -> SeededFault:
    return SeededFault(f"dynamo-load-{name}", DYNAMO, LOAD_MODEL, "wrong-model", plant, build, note)


def _branch() -> Any:
    return Fork(lambda x: functional.gelu(x), lambda x: functional.gelu(x, approximate="tanh")), (torch.randn(4, 8),)


def _shape_branch() -> Any:
    return Fork(lambda x: x.sum(0), lambda x: x.sum(0).expand(4, 3) + 0), (torch.randn(4, 3),)


def _nan_branch() -> Any:
    return Fork(lambda x: x * 2, lambda x: torch.where(x == x.max(), torch.log(-x.abs()), x * 2)), (torch.randn(4, 3),)


def _raising_branch() -> Any:
    return Fork(lambda x: x * 2, _raising), (torch.randn(4, 3),)


_aten = torch.ops.aten

FAULTS = (
    _wrong("export-only-branch", nothing, seeded(_branch), "GELU by tanh only while exporting: verify=True passes it"),
    _wrong("branch-of-broadcastable-shape", nothing, seeded(_shape_branch), "(4, 3) for (3,): verify=True passes it"),
    _wrong("branch-of-one-sided-nan", nothing, seeded(_nan_branch), "NaN at one element only while exporting"),
    _wrong(
        "swapped-operands",
        _editing_capture(_aten.sub.Tensor, _swap_arguments),
        of(lambda x, y: (x - y).tanh(), (4, 8), (4, 8)),
        "Capture exchanges the operands of a subtraction",
    ),
    _wrong(
        "rounded-literal",
        _editing_capture(_aten.mul.Tensor, _round_literal),
        of(lambda x: (x * 0.70710678).sin(), (4, 8)),
        "Capture writes literals with three digits",
    ),
    _wrong(
        "wrong-axis",
        _editing_capture(_aten.softmax.int, _use_first_axis),
        of(lambda x: torch.softmax(x, -1), (8, 8)),
        "Capture replaces the axis of a softmax",
    ),
    _wrong(
        "reversed-view",
        _editing_capture(_aten.permute.default, _reverse_order),
        of(lambda x: x.permute(1, 2, 0).cumsum(0), (4, 4, 4)),
        "Capture reverses a permutation",
    ),
    _wrong(
        "decomposed-silu",
        _decomposing(_aten.silu.default, _silu),
        with_linear(lambda f, x: functional.silu(f(x)), (4, 8)),
        "SiLU is decomposed into a hard swish",
    ),
    _wrong(
        "decomposed-gelu",
        _decomposing(_aten.gelu.default, _gelu),
        NETWORK,
        "GELU is decomposed into x sigmoid(1.702 x)",
    ),
    _wrong(
        "decomposed-softplus",
        _decomposing(_aten.softplus.default, _softplus),
        of(functional.softplus, (4, 8)),
        "Softplus is decomposed with 1.001 for 1",
    ),
    _wrong(
        "decomposed-fmod",
        _decomposing(_aten.fmod.Scalar, _fmod),
        of(lambda x: torch.fmod(x, 2.0), (4, 8), scale=4.0),
        "fmod is decomposed into remainder",
    ),
    SeededFault(
        "dynamo-load-branch-raises",
        DYNAMO,
        LOAD_MODEL,
        "crash",
        nothing,
        seeded(_raising_branch),
        "The model itself raises while it is captured",
    ),
    SeededFault(
        "dynamo-load-decomposition-raises",
        DYNAMO,
        LOAD_MODEL,
        "crash",
        _decomposing(_aten.gelu.default, _raising),
        NETWORK,
        "The decomposition of GELU raises",
    ),
    *(
        SeededFault(
            f"dynamo-load-capture-{action}",
            DYNAMO,
            LOAD_MODEL,
            "crash",
            lambda action=action: _broken_tracer(action),
            NETWORK,
            f"torch.export {action}",
            ends_process=action in DEADLY,
        )
        for action in ACTIONS
    ),
)
