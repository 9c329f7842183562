"""Modules around the models of transformers: named tensors in, a flat tuple of tensors out.

The models return dictionary-like objects with fields of None, which the TorchScript exporter cannot trace, and take
dozens of parameters of which we give one to three.  The wrappers change nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

from trueport.adapters.sources.torch_inputs import forward_parameters


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


class Outputs(nn.Module):  # type: ignore[misc]  # torch is not followed by the type checker
    """Calls a model on images and returns the tensors of its output, whatever it keeps them in."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, *images: Tensor) -> tuple[Tensor, ...]:
        """Returns every tensor of the output."""
        return tuple(leaf for leaf in pytree.tree_leaves(self.model(*images)) if isinstance(leaf, torch.Tensor))


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


class Prefill(TensorOutputs):
    """Token ids with their padding mask; keys and values of all layers come out, for the steps of decoding."""

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> tuple[Tensor, ...]:
        """Returns the logits, and keys and values layer by layer."""
        output = self.model(input_ids=input_ids, attention_mask=attention_mask, use_cache=True)
        return (output.logits, *_cached(output))


class Decode(TensorOutputs):
    """One step of decoding: new token ids, with keys and values of what came before."""

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor, past_key_values: tuple[tuple[Tensor, Tensor], ...]
    ) -> tuple[Tensor, ...]:
        """Returns the logits, and keys and values with the new ones at the end, layer by layer."""
        from transformers import DynamicCache

        held = DynamicCache([(keys, values) for keys, values in past_key_values])
        # Releases differ in the name of the parameter, and warn of the other one.
        name = "cache" if "cache" in forward_parameters(self.model) else "past_key_values"
        output = self.model(input_ids=input_ids, attention_mask=attention_mask, use_cache=True, **{name: held})
        return (output.logits, *_cached(output))


def _cached(output: Any) -> list[Tensor]:
    """Returns keys and values layer by layer."""
    held = output["cache"] if "cache" in output else output["past_key_values"]
    return [tensor for layer in held.layers for tensor in (layer.keys, layer.values)]


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
        ("prefill",): Prefill,
        ("input_ids", "attention_mask", "past_key_values"): Decode,
        ("input_ids", "attention_mask", "decoder_input_ids"): TextToText,
        ("input_features", "decoder_input_ids"): SpeechToText,
        ("input_values",): Sound,
        ("past_values",): Series,
        ("pixel_values",): Image,
        ("input_ids", "pixel_values"): TextAndImage,
        ("input_ids", "pixel_values", "attention_mask"): MaskedTextAndImage,
    }
)
