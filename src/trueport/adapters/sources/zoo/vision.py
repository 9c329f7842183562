"""Models of images, and of images with text."""

from __future__ import annotations

from typing import Any

from trueport.adapters.sources.zoo.architecture import Architecture, mask, pixels, tokens

_VIT: dict[str, Any] = {
    "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64, "image_size": 32,
    "patch_size": 8, "num_labels": 5,
}  # fmt: skip
_SWIN: dict[str, Any] = {
    "image_size": 32, "patch_size": 4, "embed_dim": 16, "depths": [2, 2], "num_heads": [2, 4], "window_size": 4,
    "num_labels": 5, "drop_path_rate": 0.0,
}  # fmt: skip
_STAGES: dict[str, Any] = {"depths": [1, 2], "hidden_sizes": [16, 32], "num_labels": 5}
_RESNET: dict[str, Any] = {"embedding_size": 16, **_STAGES, "layer_type": "bottleneck"}
_CONVNEXT: dict[str, Any] = {**_STAGES, "num_stages": 2, "image_size": 32, "drop_path_rate": 0.0}
_CLIP_TEXT: dict[str, Any] = {
    "vocab_size": 120, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64,
    "max_position_embeddings": 64, "projection_dim": 16, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0,
}  # fmt: skip
_CLIP_VISION: dict[str, Any] = {k: v for k, v in _VIT.items() if k != "num_labels"} | {"projection_dim": 16}
_DETR: dict[str, Any] = {
    "use_timm_backbone": False, "use_pretrained_backbone": False, "backbone": None, "d_model": 32,
    "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4, "decoder_attention_heads": 4,
    "encoder_ffn_dim": 64, "decoder_ffn_dim": 64, "num_queries": 6, "num_labels": 5,
    "backbone_config": {"__class__": "ResNetConfig", **_RESNET, "out_features": ["stage2"]},
}  # fmt: skip


def _image(
    name: str, description: str, prefix: str, settings: dict[str, Any], task: str = "", size: int = 32
) -> Architecture:
    model = f"{prefix}{task or 'ForImageClassification'}"
    return Architecture(name, description, f"{prefix}Config", model, settings, (pixels(size),))


VISION: tuple[Architecture, ...] = (
    _image("vit", "ViT", "ViT", _VIT),
    _image("deit", "DeiT, distilled", "DeiT", _VIT, "ForImageClassificationWithTeacher"),
    _image("beit", "BEiT, relative positions, LayerScale", "Beit",
           _VIT | {"use_relative_position_bias": True, "layer_scale_init_value": 0.1, "drop_path_rate": 0.0}),
    _image("dinov2", "DINOv2, LayerScale", "Dinov2", _VIT | {"mlp_ratio": 2}),
    _image("swin", "Swin, shifted windows", "Swin", _SWIN),
    _image("swinv2", "Swin v2, cosine attention", "Swinv2", _SWIN),
    _image("convnext", "ConvNeXt", "ConvNext", _CONVNEXT),
    _image("convnextv2", "ConvNeXt v2, global response norm", "ConvNextV2", _CONVNEXT),
    _image("resnet", "ResNet", "ResNet", _RESNET),
    _image("regnet", "RegNet, squeeze and excitation", "RegNet", _RESNET | {"groups_width": 8, "layer_type": "y"}),
    _image("mobilenet-v2", "MobileNet v2", "MobileNetV2", {"depth_multiplier": 0.25, "image_size": 32,
                                                            "num_labels": 5, "depth_divisible_by": 8}, size=64),
    _image("efficientnet", "EfficientNet", "EfficientNet",
           {"width_coefficient": 0.25, "depth_coefficient": 0.25, "image_size": 32, "hidden_dim": 320,
            "num_labels": 5, "depth_divisor": 8, "drop_connect_rate": 0.0}, size=64),
    _image("mobilevit", "MobileViT, unfolding into patches", "MobileViT",
           {"image_size": 64, "hidden_sizes": [16, 24, 32], "neck_hidden_sizes": [8, 8, 16, 16, 24, 24, 32],
            "num_attention_heads": 4, "num_labels": 5, "output_stride": 16}, size=64),
    _image("segformer", "SegFormer, segmentation", "Segformer",
           {"depths": [1, 1, 1, 1], "hidden_sizes": [8, 16, 16, 32], "num_attention_heads": [1, 2, 2, 4],
            "decoder_hidden_size": 16, "num_labels": 5, "drop_path_rate": 0.0}, "ForSemanticSegmentation", 64),
    _image("poolformer", "PoolFormer, pooling for attention", "PoolFormer",
           {"depths": [1, 1, 1, 1], "hidden_sizes": [8, 16, 16, 32], "num_labels": 5, "drop_path_rate": 0.0}, size=64),
    _image("pvt-v2", "PVT v2, reduced attention", "PvtV2",
           {"depths": [1, 1, 1, 1], "hidden_sizes": [8, 16, 16, 32], "num_attention_heads": [1, 2, 2, 4],
            "mlp_ratios": [2, 2, 2, 2], "num_labels": 5, "drop_path_rate": 0.0, "image_size": 64}, size=64),
    _image("levit", "LeViT, batch norms in attention", "Levit",
           {"image_size": 64, "hidden_sizes": [16, 24, 32], "num_attention_heads": [2, 3, 4], "depths": [1, 1, 1],
            "key_dim": [8, 8, 8], "mlp_ratio": [2, 2, 2], "attention_ratio": [2, 2, 2], "num_labels": 5,
            "drop_path_rate": 0}, size=64),
    _image("focalnet", "FocalNet, focal modulation", "FocalNet",
           {"image_size": 32, "patch_size": 4, "embed_dim": 16, "depths": [1, 1], "focal_levels": [2, 2],
            "focal_windows": [3, 3], "num_labels": 5, "hidden_sizes": [16, 32], "drop_path_rate": 0.0}),
    _image("swin2sr", "Swin2SR, super-resolution", "Swin2SR",
           {"image_size": 16, "embed_dim": 16, "depths": [2], "num_heads": [2], "window_size": 4, "upscale": 2,
            "drop_path_rate": 0.0}, "ForImageSuperResolution", 16),
    _image("dpt", "DPT, depth", "DPT",
           _VIT | {"num_hidden_layers": 4, "backbone_out_indices": [0, 1, 2, 3], "neck_hidden_sizes": [8, 16, 16, 32],
                   "fusion_hidden_size": 16, "is_hybrid": False, "reassemble_factors": [4, 2, 1, 0.5]},
           "ForDepthEstimation"),
    _image("yolos", "YOLOS, detection tokens", "Yolos", _VIT | {"image_size": [32, 32], "num_detection_tokens": 6},
           "ForObjectDetection"),
    _image("detr", "DETR, detection with a ResNet", "Detr", _DETR, "ForObjectDetection", 64),
    Architecture("clip", "CLIP, image and text", "CLIPConfig", "CLIPModel",
                 {"text_config": _CLIP_TEXT, "vision_config": _CLIP_VISION, "projection_dim": 16},
                 (tokens(), pixels(), mask()), {"sequence": 60}),
    Architecture("siglip", "SigLIP, image and text", "SiglipConfig", "SiglipModel",
                 {"text_config": _CLIP_TEXT | {"max_position_embeddings": 12, "projection_size": 32},
                  "vision_config": _CLIP_VISION},
                 (tokens(symbol=None), pixels())),
)  # fmt: skip
