"""Models with an encoder and a decoder, for text and for speech, and models of sound."""

from __future__ import annotations

from typing import Any

from trueport.adapters.sources.zoo.architecture import Architecture, mask, signal, tokens

_SPECIAL: dict[str, Any] = {
    "use_cache": False, "tie_word_embeddings": False, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0,
    "decoder_start_token_id": 1,
}  # fmt: skip
_BART: dict[str, Any] = {
    "vocab_size": 120, "d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4,
    "decoder_attention_heads": 4, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64, "max_position_embeddings": 64,
    "forced_eos_token_id": None,
} | _SPECIAL  # fmt: skip
_T5: dict[str, Any] = {
    "vocab_size": 120, "d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 4,
    "relative_attention_num_buckets": 8, "relative_attention_max_distance": 16,
} | _SPECIAL  # fmt: skip
_DECODER = tokens("decoder_input_ids", 9, symbol="decoder_sequence")
_TEXT = (tokens(), mask(), _DECODER)
_LONGEST = {"sequence": 60, "decoder_sequence": 60}
_SPEECH: dict[str, Any] = {
    "vocab_size": 32, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64,
    "conv_dim": [32, 32, 32], "conv_stride": [4, 2, 2], "conv_kernel": [8, 3, 3], "num_conv_pos_embeddings": 8,
    "num_conv_pos_embedding_groups": 4, "num_feat_extract_layers": 3, "mask_time_prob": 0.0, "layerdrop": 0.0,
    "pad_token_id": 0,
}  # fmt: skip
_WAVE = (signal("input_values", 2, 800, dynamic={0: "batch", 1: "samples"}),)


def _text(name: str, description: str, prefix: str, settings: dict[str, Any], model: str = "") -> Architecture:
    model = model or f"{prefix}ForConditionalGeneration"
    return Architecture(name, description, f"{prefix}Config", model, settings, _TEXT, _LONGEST)


ENCODER_DECODERS: tuple[Architecture, ...] = (
    _text("t5", "T5, relative position buckets", "T5", _T5),
    _text("t5-gated", "T5 1.1, gated GELU", "T5", _T5 | {"feed_forward_proj": "gated-gelu"}),
    _text("bart", "BART", "Bart", _BART),
    _text("mbart", "mBART, norms before the layers", "MBart", _BART),
    _text("pegasus", "Pegasus, sinusoidal positions", "Pegasus", _BART),
    _text("marian", "Marian", "Marian", _BART, "MarianMTModel"),
    Architecture("whisper", "Whisper, speech to text", "WhisperConfig", "WhisperForConditionalGeneration",
                 {**_BART, "num_mel_bins": 16, "max_source_positions": 24, "max_target_positions": 64,
                  "suppress_tokens": None, "begin_suppress_tokens": None},
                 (signal("input_features", 2, 16, 48), _DECODER), _LONGEST),
    Architecture("wav2vec2", "wav2vec 2.0, weight norm", "Wav2Vec2Config", "Wav2Vec2ForCTC", _SPEECH, _WAVE,
                 {"samples": 4000}),
    Architecture("hubert", "HuBERT", "HubertConfig", "HubertForCTC", _SPEECH | {"do_stable_layer_norm": True,
                 "feat_extract_norm": "layer"}, _WAVE, {"samples": 4000}),
    Architecture("wavlm", "WavLM, gated relative positions", "WavLMConfig", "WavLMForCTC",
                 _SPEECH | {"num_buckets": 16, "max_bucket_distance": 32}, _WAVE, {"samples": 4000}),
    Architecture("speech2text", "Speech2Text, convolutional subsampling", "Speech2TextConfig",
                 "Speech2TextForConditionalGeneration",
                 {**_BART, "input_feat_per_channel": 16, "max_source_positions": 64, "max_target_positions": 64,
                  "conv_channels": 32, "num_conv_layers": 2, "pad_token_id": 1, "bos_token_id": 0},
                 (signal("input_features", 2, 48, 16), _DECODER), _LONGEST),
    Architecture("ast", "Audio Spectrogram Transformer", "ASTConfig", "ASTForAudioClassification",
                 {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64,
                  "patch_size": 8, "frequency_stride": 8, "time_stride": 8, "max_length": 32, "num_mel_bins": 16,
                  "num_labels": 5}, (signal("input_values", 2, 32, 16),)),
    Architecture("time-series", "PatchTST, forecasts of time series", "PatchTSTConfig", "PatchTSTForRegression",
                 {"num_input_channels": 3, "context_length": 32, "patch_length": 8, "patch_stride": 8,
                  "num_targets": 4, "d_model": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "ffn_dim": 64,
                  "prediction_length": 8, "scaling": None}, (signal("past_values", 2, 32, 3),)),
)  # fmt: skip
