"""The table of kernels: one function per operator, found by (domain, operator), resolved once when a model is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from trueport.core.errors import ToolError

Function = TypeVar("Function", bound=Callable[..., Any])


class MissingKernel(ToolError):  # noqa: N818 - the name that callers know
    """A node was reached whose operator has no float64 kernel.

    Attributes:
        operator: as `domain::OpType`.
        node: name of the node, or of its first output where it has no name.
    """

    def __init__(self, operator: str, node: str, reason: str = "") -> None:
        detail = f" ({reason})" if reason else ""
        super().__init__(f"no float64 kernel for operator {operator}{detail} of node '{node}'")
        self.operator = operator
        self.node = node


@dataclass(frozen=True)
class Node:
    """One node as its file declares it.

    Attributes:
        attributes: explicit attributes, parsed; float32 attributes hold their float32 value exactly, tensors of a
            floating-point type are in float64, graphs are left as protos.
        metadata: from `metadata_props`.
    """

    name: str
    op_type: str
    domain: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    metadata: Mapping[str, str] = field(default_factory=dict)

    @property
    def operator(self) -> str:
        """The operator as `domain::OpType`."""
        return f"{self.domain or 'ai.onnx'}::{self.op_type}"

    @property
    def label(self) -> str:
        """The name, or where there is none the first output."""
        return self.name or next((name for name in self.outputs if name), self.op_type)


@dataclass(frozen=True, slots=True)
class Call:
    """What a kernel knows about the node that it computes, besides the values.

    Attributes:
        node: the node.
        opset: version of the operator set of the node's domain.
        attributes: explicit attributes over the defaults of the operator's schema.
        input_types: declared element type of each input, as a NumPy-style name, empty where unknown.
        output_types: the same for the outputs.
    """

    node: Node
    opset: int
    attributes: Mapping[str, Any]
    input_types: tuple[str, ...]
    output_types: tuple[str, ...]

    @property
    def n_outputs(self) -> int:
        """The number of outputs that the node names, up to the last one that has a name."""
        return len(self.node.outputs)


@dataclass(frozen=True, slots=True)
class Kernel:
    """A registered function.

    Attributes:
        function: called with the `Call` and the input values (None where omitted); for `control` operators the
            mapping from attribute to callable subgraph stands between.
        selects: every output element is one of the inputs' or exact in their type, so nothing can overflow.
        control: the operator runs subgraphs.
        supports: tells from a call whether the kernel covers it; asked once, when the model is read.
    """

    function: Callable[..., Any]
    selects: bool = False
    control: bool = False
    supports: Callable[[Call], bool] | None = None


EARLY = "ai.onnx before 7"
"""Stands for the domain of standard operators as they were before operator set 7."""

_KERNELS: dict[tuple[str, str], Kernel] = {}


def kernel(
    *op_types: str,
    domain: str = "",
    selects: bool = False,
    control: bool = False,
    supports: Callable[[Call], bool] | None = None,
) -> Callable[[Function], Function]:
    """Returns a decorator that registers a function as the kernel of operators."""

    def register(function: Function) -> Function:
        for op_type in op_types:
            if (domain, op_type) in _KERNELS:
                raise ValueError(f"operator {domain}::{op_type} has a kernel already")
            _KERNELS[domain, op_type] = Kernel(function, selects, control, supports)
        return function

    return register


def find_kernel(domain: str, op_type: str) -> Kernel | None:
    """Returns the kernel of an operator, or None."""
    return _KERNELS.get((domain, op_type))


def registered() -> tuple[tuple[str, str], ...]:
    """Returns all (domain, operator) that have a kernel, sorted."""
    return tuple(sorted(_KERNELS))
