"""The float64 companions of one tensor of the real run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor

View = Callable[[Tensor], Tensor]

WIDE = {
    torch.float16: torch.float64,
    torch.bfloat16: torch.float64,
    torch.float32: torch.float64,
    torch.float64: torch.float64,
    torch.complex64: torch.complex128,
    torch.complex128: torch.complex128,
}
"""What each type is held in. The double types are their own companions: there the noise is that of another order."""

NARROW = frozenset(narrow for narrow, wide in WIDE.items() if narrow is not wide)
"""The types for which float64 is exact beside their own rounding."""


def widen(tensor: Tensor) -> Tensor:
    """Returns a private float64 (complex128) copy of a floating-point tensor; anything else as it is."""
    wide = WIDE.get(tensor.dtype)
    return tensor if wide is None else tensor.detach().to(wide, copy=True)


@dataclass(eq=False)
class Shadow:
    """One tensor in float64: without noise, with noise, and with every jump decided the other way.

    Attributes:
        main: without noise; a view of `base.main` where the real tensor is a view.
        noisy: one tensor per draw, or None while they all equal `main`.
        other: alternates at tainted jumps, or None before the first.
        exact: `main` equals the real tensor bit for bit.
        constant: does not depend on the model's inputs.
        base: the shadow that `main` is a view of; noise that reaches the base later reaches the view through `view`.
    """

    main: Tensor
    noisy: list[Tensor] | None = None
    other: list[Tensor] | None = None
    exact: bool = False
    constant: bool = False
    base: Shadow | None = None
    view: View | None = field(default=None, repr=False)

    def refresh(self) -> None:
        """Takes over noise and alternates that reached the base after the view was made."""
        if self.base is None or self.view is None:
            return
        self.base.refresh()
        if self.noisy is None and self.base.noisy is not None:
            self.noisy = [self.view(t) for t in self.base.noisy]
        if self.other is None and self.base.other is not None:
            self.other = [self.view(t) for t in self.base.other]

    def root(self) -> Shadow:
        """Returns the shadow that owns the storage."""
        return self if self.base is None else self.base.root()

    def materialize(self, *, draws: int, others: int) -> None:
        """Gives the storage its own noisy and other copies, so that they can be written in place."""
        owner = self.root()
        if draws and owner.noisy is None:
            owner.noisy = [owner.main.clone() for _ in range(draws)]
        if others and owner.other is None:
            owner.other = [owner.main.clone() for _ in range(others)]
        self.refresh()
