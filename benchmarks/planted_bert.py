"""A model of the size of BERT-base with one fault: the translation of one of its operators is a wrong one."""

from __future__ import annotations

from typing import Any

import torch
from onnxscript import opset18 as op
from torch import nn

from benchmarks.large import Made, bert_base

LAYER = 7
OPERATOR = "aten.silu.default"


def planted() -> Made:
    """An encoder of 110 million weights in which one layer has an activation of its own."""
    module, args = bert_base()
    layers: Any = next(m for m in module.modules() if hasattr(m, "encoder")).encoder.layer
    layers[LAYER].intermediate.intermediate_act_fn = nn.SiLU()
    return module, args


def _wrong_silu(x: Any) -> Any:
    return op.Mul(x, op.HardSigmoid(x))


planted.export_options = {  # type: ignore[attr-defined]  # read by the check
    "custom_translation_table": {torch.ops.aten.silu.default: _wrong_silu}
}
