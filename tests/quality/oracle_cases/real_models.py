"""Right conversions of real architectures: the last rows of the design's third table, small and without a network.

Weights are drawn so that activations keep their scale, as random initialization of a whole model would hide errors.
"""

from typing import Any

import torch
from torch import nn

from tests.quality.oracle_cases.case import CALIBRATION, MEANING, TEST, CaseList, Subject

CASES = CaseList(right=True)


class TensorsOnly(nn.Module):
    """Calls a model with positional arguments under the given names and returns the first of its outputs."""

    def __init__(self, model: nn.Module, *names: str) -> None:
        super().__init__()
        self.model = model
        self.names = names

    def forward(self, *args: torch.Tensor) -> torch.Tensor:
        return self.model(**dict(zip(self.names, args, strict=True)), return_dict=False)[0]


def _redraw(model: nn.Module) -> nn.Module:
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() >= 2:
                fan_in = parameter[0].numel()
                parameter.normal_(std=fan_in**-0.5)
    return model


def _transformer(kind: str, names: tuple[str, ...], **options: Any) -> nn.Module:
    import transformers

    config = getattr(transformers, f"{kind.removesuffix('Model').removesuffix('Encoder')}Config")(**options)
    return TensorsOnly(_redraw(getattr(transformers, kind)(config)), *names)


def _tokens(length: int = 12) -> tuple[torch.Tensor]:
    return (torch.randint(3, 100, (1, length)),)


@CASES.add(MEANING, CALIBRATION, "GPT-2, two layers")
def gpt2() -> Subject:
    model = _transformer("GPT2Model", ("input_ids",), vocab_size=100, n_embd=32, n_layer=2, n_head=4, use_cache=False)
    return model, _tokens()


@CASES.add(MEANING, TEST, "ViT, two layers")
def vit() -> Subject:
    options = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
    model = _transformer("ViTModel", ("pixel_values",), image_size=32, patch_size=8, **options)
    return model, (torch.randn(1, 3, 32, 32),)


@CASES.add(MEANING, CALIBRATION, "Llama, two layers")
def llama() -> Subject:
    options = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
    model = _transformer("LlamaModel", ("input_ids",), vocab_size=100, use_cache=False, **options)
    return model, _tokens()


@CASES.add(MEANING, TEST, "Mamba, two layers")
def mamba() -> Subject:
    options = {"hidden_size": 16, "state_size": 4, "num_hidden_layers": 2, "use_cache": False}
    return _transformer("MambaModel", ("input_ids",), vocab_size=100, **options), _tokens(6)


@CASES.add(MEANING, CALIBRATION, "Swin, two stages")
def swin() -> Subject:
    options = {"embed_dim": 16, "depths": [1, 1], "num_heads": [2, 4], "window_size": 4}
    model = _transformer("SwinModel", ("pixel_values",), image_size=32, patch_size=4, **options)
    return model.requires_grad_(False), (torch.randn(1, 3, 32, 32),)


@CASES.add(MEANING, TEST, "SegFormer, two stages")
def segformer() -> Subject:
    options = {
        "num_encoder_blocks": 2,
        "depths": [1, 1],
        "sr_ratios": [2, 1],
        "hidden_sizes": [16, 32],
        "patch_sizes": [7, 3],
        "strides": [4, 2],
        "num_attention_heads": [1, 2],
        "mlp_ratios": [2, 2],
    }
    return _transformer("SegformerModel", ("pixel_values",), **options), (torch.randn(1, 3, 32, 32),)


@CASES.add(MEANING, CALIBRATION, "The encoder of T5, two layers")
def t5_encoder() -> Subject:
    options = {"d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 4, "use_cache": False}
    model = _transformer("T5EncoderModel", ("input_ids",), vocab_size=100, **options)
    return model.requires_grad_(False), _tokens()


@CASES.add(MEANING, TEST, "The text side of CLIP, two layers")
def clip_text() -> Subject:
    options = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
    model = _transformer("CLIPTextModel", ("input_ids",), vocab_size=100, eos_token_id=99, **options)
    return model, _tokens()


class _Block(nn.Module):
    def __init__(self, before: int, after: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(before, after, 3, stride, 1, bias=False),
            nn.BatchNorm2d(after),
            nn.ReLU(),
            nn.Conv2d(after, after, 3, 1, 1, bias=False),
            nn.BatchNorm2d(after),
        )
        self.skip = nn.Sequential(nn.Conv2d(before, after, 1, stride, bias=False), nn.BatchNorm2d(after))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.body(x) + self.skip(x))


@CASES.add(MEANING, CALIBRATION, "A residual network whose batch norms are folded in float32")
def resnet() -> Subject:
    layers = [nn.Conv2d(3, 16, 3, 2, 1), nn.BatchNorm2d(16), nn.ReLU(), _Block(16, 32, 2), _Block(32, 64, 2)]
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.running_mean.normal_(std=0.3)
            module.running_var.uniform_(0.3, 2.0)
    return model, (torch.randn(1, 3, 32, 32),)


@CASES.add(MEANING, TEST, "wav2vec2, two layers, with a weight norm that is folded")
def wav2vec2() -> Subject:
    options = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
    features = {"conv_dim": (16, 16), "conv_stride": (5, 2), "conv_kernel": (10, 3), "num_feat_extract_layers": 2}
    positions = {"num_conv_pos_embeddings": 16, "num_conv_pos_embedding_groups": 4}
    model = _transformer("Wav2Vec2Model", ("input_values",), **options, **features, **positions)
    return model, (torch.randn(1, 800),)
