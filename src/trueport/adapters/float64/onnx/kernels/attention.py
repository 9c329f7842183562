"""Attention (operator sets 23 to 25) and rotary position embedding."""

from __future__ import annotations

import math

import numpy as np

from trueport.adapters.float64.onnx.dtypes import Array
from trueport.adapters.float64.onnx.kernels.pytorch import product
from trueport.adapters.float64.onnx.kernels.softmax import softmax
from trueport.adapters.float64.onnx.registry import Call, kernel


def split_heads(x: Array, heads: int) -> Array:
    """Returns [batch, heads, length, size] from [batch, length, heads * size]; rank 4 is left as it is."""
    if x.ndim == 4:
        return x
    return np.swapaxes(x.reshape(*x.shape[:2], heads, -1), 1, 2)


def join_heads(x: Array) -> Array:
    """Returns [batch, length, heads * size] from [batch, heads, length, size]."""
    return np.swapaxes(x, 1, 2).reshape(x.shape[0], x.shape[2], -1)


@kernel("Attention")
def attention(
    call: Call, q: Array, k: Array, v: Array, mask: Array | None = None, past_k: Array | None = None,
    past_v: Array | None = None, valid: Array | None = None,
) -> tuple[Array, ...]:  # fmt: skip
    """Returns softmax(q k^T scale + mask) v, the keys and values with the past in front, and the scores asked for."""
    attributes = call.attributes
    joined = q.ndim == 3
    heads_q, heads_k = attributes.get("q_num_heads", 0), attributes.get("kv_num_heads", 0)
    q, k, v = split_heads(q, heads_q), split_heads(k, heads_k), split_heads(v, heads_k)
    if past_k is not None and past_v is not None:
        k, v = np.concatenate([past_k, k], axis=2), np.concatenate([past_v, v], axis=2)
    present = (k, v)
    if q.shape[1] != k.shape[1]:
        repeats = q.shape[1] // k.shape[1]
        k, v = np.repeat(k, repeats, axis=1), np.repeat(v, repeats, axis=1)
    scale = attributes.get("scale")
    scale = scale if scale else 1.0 / math.sqrt(q.shape[-1])
    raw = product(q, np.swapaxes(k, 2, 3)) * scale
    softcap = attributes.get("softcap", 0.0)
    capped = softcap * np.tanh(raw / softcap) if softcap else raw
    bias = _bias(call, q, k, mask, 0 if past_k is None else past_k.shape[2], valid)
    biased = capped + bias
    weights = _masked_softmax(biased, bias)
    output = product(weights, v)
    shown = (capped, capped, biased, weights)[attributes.get("qk_matmul_output_mode", 0)]
    return join_heads(output) if joined else output, *present, shown


def _masked_softmax(scores: Array, bias: Array) -> Array:
    """Returns the softmax over keys, zero for a query that may attend to none."""
    blocked = np.isneginf(np.max(bias, axis=-1, keepdims=True))
    return np.where(blocked, 0.0, softmax(np.where(blocked, 0.0, scores), -1))


def _bias(call: Call, q: Array, k: Array, mask: Array | None, past: int, valid: Array | None) -> Array:
    """Returns what is added to the scores: 0 where a query may attend to a key, -inf where it may not, or the mask."""
    n_q, n_k = q.shape[2], k.shape[2]
    bias = np.zeros((n_q, n_k))
    if mask is not None:
        additive = np.where(mask, 0.0, -np.inf) if mask.dtype == np.bool_ else mask
        missing = n_k - additive.shape[-1]
        if missing > 0:
            additive = np.pad(additive, [(0, 0)] * (additive.ndim - 1) + [(0, missing)], constant_values=-np.inf)
        bias = bias + additive
    # The distance from a key to a query counts from the last key of the query's own block.
    shift = (valid.reshape(-1, 1, 1, 1) - n_q) if valid is not None else np.asarray(past)
    ahead = np.arange(n_k) - (np.arange(n_q)[:, None] + shift)
    left, right = call.attributes.get("left_window_size", -1), call.attributes.get("right_window_size", -1)
    allowed = np.ones((), dtype=np.bool_)
    if call.attributes.get("is_causal", 0):
        allowed = allowed & (ahead <= 0)
    if left >= 0:
        allowed = allowed & (-ahead <= left)
    if right >= 0:
        allowed = allowed & (ahead <= right)
    if valid is not None:
        allowed = allowed & (np.arange(n_k) < valid.reshape(-1, 1, 1, 1))
    return bias + np.where(allowed, 0.0, -np.inf) if not allowed.all() else bias


@kernel("RotaryEmbedding")
def rotary_embedding(call: Call, x: Array, cos: Array, sin: Array, positions: Array | None = None) -> Array:
    """Returns x with pairs of elements rotated by angles that depend on the position."""
    heads = call.attributes.get("num_heads", 0)
    by_length = np.swapaxes(x, 1, 2) if x.ndim == 4 else x.reshape(*x.shape[:2], heads, -1)
    width = call.attributes.get("rotary_embedding_dim", 0) or by_length.shape[-1]
    if positions is not None:
        cos, sin = cos[positions], sin[positions]
    rotated = rotate(by_length[..., :width], cos[:, :, None], sin[:, :, None], bool(call.attributes["interleaved"]))
    result = np.concatenate([rotated, by_length[..., width:]], axis=-1)
    return np.swapaxes(result, 1, 2) if x.ndim == 4 else result.reshape(x.shape)


def rotate(x: Array, cos: Array, sin: Array, interleaved: bool) -> Array:
    """Returns pairs of the last dimension rotated: neighbours, or the first half with the second."""
    if interleaved:
        first, second = x[..., 0::2], x[..., 1::2]
    else:
        first, second = np.split(x, 2, axis=-1)
    real, imaginary = cos * first - sin * second, sin * first + cos * second
    if interleaved:
        return np.stack([real, imaginary], axis=-1).reshape(x.shape)
    return np.concatenate([real, imaginary], axis=-1)
