"""The identity of a source is the SHA-256 of its content: of the file, or of the parameters where there is none."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # files of other frameworks have fingerprints too
    import torch
    from torch import nn


def sha256_of_file(path: Path) -> str:
    """Returns the SHA-256 of the bytes of the file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sha256_of_module(module: nn.Module) -> str:
    """Returns the SHA-256 of class name, and of name, dtype, shape and bytes of every parameter and buffer.

    Buffers that the state dict leaves out count too: they take part in what the module computes.
    """
    kind = type(module)
    digest = hashlib.sha256(f"{kind.__module__}.{kind.__qualname__}\n".encode())
    tensors = dict(module.named_parameters(remove_duplicate=False)) | dict(module.named_buffers(remove_duplicate=False))
    for name in sorted(tensors):
        tensor = tensors[name].detach()
        digest.update(f"{name} {tensor.dtype} {list(tensor.shape)}\n".encode())
        digest.update(_content(tensor))
    return digest.hexdigest()


def _content(tensor: torch.Tensor) -> Any:
    import torch

    if tensor.is_meta:
        return b""
    plain = tensor.int_repr() if tensor.is_quantized else tensor
    if plain.layout != torch.strided:
        plain = plain.to_dense()
    if plain.is_complex():
        plain = torch.view_as_real(plain.resolve_conj())
    flat = plain.cpu().resolve_neg().contiguous().reshape(-1)
    return flat.view(torch.uint8).numpy().data
