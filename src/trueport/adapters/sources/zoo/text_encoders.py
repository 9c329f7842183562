"""Encoders of text: one pass, both directions."""

from __future__ import annotations

from typing import Any

from trueport.adapters.sources.zoo.architecture import Architecture, mask, tokens

_SMALL: dict[str, Any] = {
    "vocab_size": 120,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
}
_INPUTS = (tokens(), mask())
_LONGEST = {"sequence": 60}


def _encoder(name: str, description: str, config: str, model: str, **settings: Any) -> Architecture:
    return Architecture(name, description, config, model, _SMALL | settings, _INPUTS, _LONGEST)


TEXT_ENCODERS: tuple[Architecture, ...] = (
    _encoder("bert", "BERT, classification", "BertConfig", "BertForSequenceClassification", num_labels=5),
    _encoder("roberta", "RoBERTa, positions from the padding", "RobertaConfig", "RobertaForMaskedLM",
             pad_token_id=1, bos_token_id=2, eos_token_id=3, tie_word_embeddings=False),
    _encoder("electra", "ELECTRA, narrow embeddings", "ElectraConfig", "ElectraForTokenClassification",
             embedding_size=16, num_labels=5),
    _encoder("albert", "ALBERT, one layer used twice", "AlbertConfig", "AlbertForSequenceClassification",
             embedding_size=16, num_labels=5, classifier_dropout_prob=0.0),
    _encoder("layoutlm", "text encoder with boxes left at zero", "LayoutLMConfig", "LayoutLMForTokenClassification",
             num_labels=5, max_2d_position_embeddings=16),
    _encoder("mpnet", "MPNet, relative position bias", "MPNetConfig", "MPNetForSequenceClassification",
             pad_token_id=1, num_labels=5),
    _encoder("deberta-v2", "DeBERTa v2, disentangled attention", "DebertaV2Config", "DebertaV2ForTokenClassification",
             relative_attention=True, position_buckets=8, pos_att_type=["p2c", "c2p"], norm_rel_ebd="layer_norm",
             share_att_key=True, num_labels=5),
    _encoder("squeezebert", "SqueezeBERT, grouped convolutions", "SqueezeBertConfig",
             "SqueezeBertForSequenceClassification", embedding_size=32, q_groups=2, k_groups=2, v_groups=2,
             post_attention_groups=1, intermediate_groups=2, output_groups=2, num_labels=5),
    _encoder("roformer", "RoFormer, rotary positions", "RoFormerConfig", "RoFormerForSequenceClassification",
             embedding_size=32, num_labels=5),
    _encoder("convbert", "ConvBERT, dynamic convolution", "ConvBertConfig", "ConvBertForSequenceClassification",
             embedding_size=32, head_ratio=2, conv_kernel_size=3, num_labels=5),
    _encoder("modernbert", "ModernBERT, local and global attention", "ModernBertConfig",
             "ModernBertForSequenceClassification", num_labels=5, local_attention=8, cls_token_id=1, sep_token_id=2,
             bos_token_id=1, eos_token_id=2),
    Architecture("distilbert", "DistilBERT, classification", "DistilBertConfig", "DistilBertForSequenceClassification",
                 {"vocab_size": 120, "dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 64, "num_labels": 5,
                  "max_position_embeddings": 64}, _INPUTS, _LONGEST),
    Architecture("fnet", "FNet, Fourier transform for attention", "FNetConfig", "FNetForSequenceClassification",
                 {"vocab_size": 120, "hidden_size": 32, "num_hidden_layers": 2, "intermediate_size": 64,
                  "max_position_embeddings": 64, "num_labels": 5}, (tokens(),), _LONGEST),
)  # fmt: skip
