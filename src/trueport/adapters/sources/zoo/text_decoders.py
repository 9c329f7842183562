"""Decoders of text: causal attention or a recurrence, without a cache; of two families, both halves of generation."""

from __future__ import annotations

from typing import Any

from trueport.adapters.sources.zoo.architecture import (
    Architecture,
    InputSpec,
    cache,
    mask,
    mask_with_past,
    next_token,
    tokens,
)

_SMALL: dict[str, Any] = {
    "vocab_size": 120,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "intermediate_size": 64,
    "max_position_embeddings": 64,
    "use_cache": False,
    "tie_word_embeddings": False,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": 0,
}
_GPT: dict[str, Any] = {
    "vocab_size": 120, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64, "use_cache": False,
    "tie_word_embeddings": False, "bos_token_id": 1, "eos_token_id": 2,
}  # fmt: skip
_STATE_SPACE: dict[str, Any] = {
    "vocab_size": 120, "hidden_size": 32, "num_hidden_layers": 2, "state_size": 8, "use_cache": False,
    "tie_word_embeddings": False, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0,
}  # fmt: skip
_LONGEST = {"sequence": 60}
# Without a mask the models look for packed sequences in the positions, which the TorchScript exporter cannot write;
# most are called with one, as generation does, and a few without.
_MASKED = (tokens(), mask())
_BARE = (tokens(),)
# These loop over the positions, so that the length becomes part of the program.
_FIXED_LENGTH = (tokens(symbol=None),)


def _llama_like(
    name: str, description: str, prefix: str, model: str = "", inputs: tuple[InputSpec, ...] = _MASKED, **settings: Any
) -> Architecture:
    return Architecture(
        name, description, f"{prefix}Config", model or f"{prefix}ForCausalLM", _SMALL | settings, inputs, _LONGEST
    )


def _other(
    name: str, description: str, prefix: str, settings: dict[str, Any], inputs: tuple[InputSpec, ...] = _MASKED
) -> Architecture:
    return Architecture(name, description, f"{prefix}Config", f"{prefix}ForCausalLM", settings, inputs, _LONGEST)


_PAST = 8


def _generation(
    name: str, title: str, config: str, model: str, settings: dict[str, Any], heads: int
) -> tuple[Architecture, Architecture]:
    """Returns the prompt with the cache that it leaves, and one step of decoding with that cache."""
    prompt = Architecture(
        f"{name}-prefill", f"{title}: the prompt, cache out", config, model, settings, _MASKED, _LONGEST, ("prefill",)
    )
    inputs = (next_token(), mask_with_past(_PAST), cache(2, heads, _PAST, 8))
    step = Architecture(
        f"{name}-decode", f"{title}: one step with a cache", config, model, settings, inputs, {"past": 59},
        weights=prompt,
    )  # fmt: skip
    return prompt, step


TEXT_DECODERS: tuple[Architecture, ...] = (
    Architecture("gpt2", "GPT-2", "GPT2Config", "GPT2LMHeadModel", _GPT, _MASKED, _LONGEST),
    _other("gptj", "GPT-J, interleaved rotary positions", "GPTJ", _GPT | {"rotary_dim": 4}),
    _other("gpt-neox", "GPT-NeoX, parallel residual", "GPTNeoX", _SMALL | {"rotary_pct": 0.5}),
    _other("gpt-neo", "GPT-Neo, local attention", "GPTNeo",
           {"vocab_size": 120, "hidden_size": 32, "num_layers": 2, "num_heads": 4, "intermediate_size": 64,
            "attention_types": [[["global", "local"], 1]], "window_size": 4, "max_position_embeddings": 64,
            "use_cache": False, "tie_word_embeddings": False, "bos_token_id": 1, "eos_token_id": 2}),
    _other("bloom", "BLOOM, ALiBi", "Bloom",
           {"vocab_size": 120, "hidden_size": 32, "n_layer": 2, "n_head": 4, "use_cache": False,
            "tie_word_embeddings": False, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}),
    _other("opt", "OPT", "OPT",
           {"vocab_size": 120, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "ffn_dim": 64,
            "max_position_embeddings": 64, "word_embed_proj_dim": 32, "use_cache": False,
            "tie_word_embeddings": False, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}),
    _llama_like("llama", "Llama, grouped queries, rotary positions", "Llama"),
    _llama_like("mistral", "Mistral, sliding window", "Mistral", sliding_window=6),
    _llama_like("qwen2", "Qwen2, biases in attention; no mask", "Qwen2", inputs=_BARE),
    _llama_like("qwen3", "Qwen3, normalized queries and keys", "Qwen3"),
    _llama_like("gemma", "Gemma, scaled embeddings, norm of 1 + w", "Gemma"),
    _llama_like("gemma2", "Gemma 2, soft-capped scores", "Gemma2", sliding_window=6, query_pre_attn_scalar=8),
    _llama_like("gemma3", "Gemma 3, local and global attention", "Gemma3Text", "Gemma3ForCausalLM", sliding_window=6,
                query_pre_attn_scalar=8),
    _llama_like("phi", "Phi, partial rotary positions", "Phi", partial_rotary_factor=0.5),
    _llama_like("phi3", "Phi-3, fused projections", "Phi3"),
    _llama_like("olmo2", "OLMo 2, norms after the layers", "Olmo2"),
    _llama_like("stablelm", "StableLM; no mask", "StableLm", inputs=_BARE, partial_rotary_factor=0.5),
    _llama_like("starcoder2", "StarCoder 2", "Starcoder2", sliding_window=6),
    _llama_like("cohere", "Cohere, interleaved rotary positions", "Cohere", logit_scale=1.0),
    _llama_like("granite", "Granite, scaled residuals", "Granite"),
    _llama_like("mixtral", "Mixtral, mixture of experts", "Mixtral", num_local_experts=4, num_experts_per_tok=2),
    _other("mamba", "Mamba, selective state space", "Mamba", _STATE_SPACE | {"time_step_rank": 4}, _FIXED_LENGTH),
    _other("mamba2", "Mamba-2, state space duality", "Mamba2",
           _STATE_SPACE | {"num_heads": 8, "head_dim": 8, "n_groups": 2, "chunk_size": 4}, _BARE),
    _other("rwkv", "RWKV, linear recurrence", "Rwkv",
           {"vocab_size": 120, "hidden_size": 32, "attention_hidden_size": 32, "num_hidden_layers": 2,
            "intermediate_size": 64, "context_length": 64, "use_cache": False, "tie_word_embeddings": False,
            "bos_token_id": 1, "eos_token_id": 2}, _FIXED_LENGTH),
    *_generation("gpt2", "GPT-2", "GPT2Config", "GPT2LMHeadModel", _GPT, 4),
    *_generation("llama", "Llama", "LlamaConfig", "LlamaForCausalLM", _SMALL, 2),
)  # fmt: skip
