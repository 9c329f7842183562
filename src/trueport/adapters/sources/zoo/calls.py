"""Modules around the models of transformers: named tensors in, a flat tuple of tensors out.

The models return dictionary-like objects with fields of None, which the TorchScript exporter cannot trace, and take
dozens of parameters of which we give one to three.  The wrappers change nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree


class TensorOutputs(nn.Module):  # type: ignore[misc]  # torch is not followed by the type checker
    """Calls the model and returns the tensors of its output, in its own order."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def tensors(self, **inputs: Tensor) -> tuple[Tensor, ...]:
        """Returns every tensor in the output of the model for these inputs; fields of None are left out."""
        output = self.model(**inputs)
        fields = output.to_tuple() if hasattr(output, "to_tuple") else output
        return tuple(leaf for leaf in pytree.tree_leaves(fields) if isinstance(leaf, torch.Tensor))


class Text(TensorOutputs):
    """Token ids."""

    def forward(self, input_ids: Tensor) -> tuple[Tensor, ...]:
        """Returns the tensors of the output."""
        return self.tensors(input_ids=input_ids)


class MaskedText(TensorOutputs):
    """Token ids with their padding mask."""

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> tuple[Tensor, ...]:
        """Returns the tensors of the output."""
        return self.tensors(input_ids=input_ids, attention_mask=attention_mask)


class TextToText(TensorOutputs):
    """Token ids of both sides."""

    def forward(self, input_ids: Tensor, attention_mask: Tensor, decoder_input_ids: Tensor) -> tuple[Tensor, ...]:
        """Returns the tensors of the output."""
        return self.tensors(input_ids=input_ids, attention_mask=attention_mask, decoder_input_ids=decoder_input_ids)


class SpeechToText(TensorOutputs):
    """Features of sound and token ids of the text so far."""

    def forward(self, input_features: Tensor, decoder_input_ids: Tensor) -> tuple[Tensor, ...]:
        """Returns the tensors of the output."""
        return self.tensors(input_features=input_features, decoder_input_ids=decoder_input_ids)


class Sound(TensorOutputs):
    """A wave or a spectrogram."""

    def forward(self, input_values: Tensor) -> tuple[Tensor, ...]:
        """Returns the tensors of the output."""
        return self.tensors(input_values=input_values)


class Series(TensorOutputs):
    """Past values of time series."""

    def forward(self, past_values: Tensor) -> tuple[Tensor, ...]:
        """Returns the tensors of the output."""
        return self.tensors(past_values=past_values)


class Image(TensorOutputs):
    """An image."""

    def forward(self, pixel_values: Tensor) -> tuple[Tensor, ...]:
        """Returns the tensors of the output."""
        return self.tensors(pixel_values=pixel_values)


class TextAndImage(TensorOutputs):
    """Token ids and an image."""

    def forward(self, input_ids: Tensor, pixel_values: Tensor) -> tuple[Tensor, ...]:
        """Returns the tensors of the output."""
        return self.tensors(input_ids=input_ids, pixel_values=pixel_values)


class MaskedTextAndImage(TensorOutputs):
    """Token ids, an image, and the padding mask of the text."""

    def forward(self, input_ids: Tensor, pixel_values: Tensor, attention_mask: Tensor) -> tuple[Tensor, ...]:
        """Returns the tensors of the output."""
        return self.tensors(input_ids=input_ids, pixel_values=pixel_values, attention_mask=attention_mask)


CALLS: Mapping[tuple[str, ...], type[TensorOutputs]] = MappingProxyType(
    {
        ("input_ids",): Text,
        ("input_ids", "attention_mask"): MaskedText,
        ("input_ids", "attention_mask", "decoder_input_ids"): TextToText,
        ("input_features", "decoder_input_ids"): SpeechToText,
        ("input_values",): Sound,
        ("past_values",): Series,
        ("pixel_values",): Image,
        ("input_ids", "pixel_values"): TextAndImage,
        ("input_ids", "pixel_values", "attention_mask"): MaskedTextAndImage,
    }
)
