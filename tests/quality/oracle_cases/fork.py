"""Modules made of plain functions, and one that means something else while it is being converted."""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

Compute = Callable[..., Any]
Part = nn.Module | torch.Tensor


def is_converting() -> bool:
    """Whether a capture by either exporter is running: `torch.export`, or the TorchScript tracer."""
    return torch.compiler.is_exporting() or torch.jit.is_tracing() or torch.onnx.is_in_onnx_export()


class Function(nn.Module):
    """Computes `compute(*parts, *args)`; modules among the parts are its children, tensors its buffers."""

    def __init__(self, compute: Compute, *parts: Part) -> None:
        super().__init__()
        self.compute = compute
        self.part_names = [f"part_{index}" for index in range(len(parts))]
        for name, part in zip(self.part_names, parts, strict=True):
            if isinstance(part, nn.Module):
                self.add_module(name, part)
            else:
                self.register_buffer(name, part)

    def parts(self) -> list[Part]:
        """The modules and tensors that the function is given before its arguments."""
        return [getattr(self, name) for name in self.part_names]

    def forward(self, *args: Any) -> Any:
        return self.compute(*self.parts(), *args)


class Fork(Function):
    """Computes `source` when it is called and `converted` when it is captured, both with the same parts.

    A right conversion has two sides that are equal over the real numbers.
    """

    def __init__(self, source: Compute, converted: Compute, *parts: Part) -> None:
        super().__init__(source, *parts)
        self.converted = converted

    def forward(self, *args: Any) -> Any:
        compute = self.converted if is_converting() else self.compute
        return compute(*self.parts(), *args)

    def forward_converted(self, *args: Any) -> Any:
        """What the converted program computes, without any conversion."""
        return self.converted(*self.parts(), *args)
