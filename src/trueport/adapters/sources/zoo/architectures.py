"""The table of the zoo: every architecture by its name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from trueport.adapters.sources.zoo.architecture import Architecture
from trueport.adapters.sources.zoo.encoder_decoders import ENCODER_DECODERS
from trueport.adapters.sources.zoo.text_decoders import TEXT_DECODERS
from trueport.adapters.sources.zoo.text_encoders import TEXT_ENCODERS
from trueport.adapters.sources.zoo.vision import VISION

ARCHITECTURES: Mapping[str, Architecture] = MappingProxyType(
    {entry.name: entry for entry in (*TEXT_ENCODERS, *TEXT_DECODERS, *ENCODER_DECODERS, *VISION)}
)
