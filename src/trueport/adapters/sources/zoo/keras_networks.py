"""Small Keras networks of the kinds that keras.applications lacks: recurrent, attention, text, segmentation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import keras
from keras import layers

_WORDS, _LENGTH, _WIDTH = 120, 12, 16


def _mlp() -> Any:
    x = inputs = keras.Input((12,), name="features")
    for width in (32, 16):
        x = layers.Dense(width, activation="relu")(x)
        x = layers.BatchNormalization()(x)
        x = layers.Dropout(0.2)(x)
    return keras.Model(inputs, layers.Dense(4)(x), name="mlp")


def _lstm() -> Any:
    inputs = keras.Input((None, 6), name="sequence")
    x = layers.LSTM(_WIDTH, return_sequences=True)(inputs)
    return keras.Model(inputs, layers.Dense(3)(layers.LSTM(8)(x)), name="lstm")


def _gru() -> Any:
    inputs = keras.Input((None, 6), name="sequence")
    return keras.Model(inputs, layers.Dense(3)(layers.GRU(_WIDTH)(inputs)), name="gru")


def _bidirectional_lstm() -> Any:
    inputs = keras.Input((10, 6), name="sequence")
    x = layers.Bidirectional(layers.LSTM(8, return_sequences=True))(inputs)
    return keras.Model(inputs, layers.TimeDistributed(layers.Dense(3))(x), name="bidirectional_lstm")


def _simple_rnn() -> Any:
    inputs = keras.Input((8, 6), name="sequence")
    return keras.Model(inputs, layers.Dense(3)(layers.SimpleRNN(_WIDTH)(inputs)), name="simple_rnn")


def _text_average() -> Any:
    inputs, x = _embedded()
    x = layers.Dense(_WIDTH, activation="relu")(layers.GlobalAveragePooling1D()(x))
    return keras.Model(inputs, layers.Dense(3)(x), name="text_average")


def _text_cnn() -> Any:
    inputs, x = _embedded()
    maxima = [layers.GlobalMaxPooling1D()(layers.Conv1D(8, width, activation="relu")(x)) for width in (2, 3, 4)]
    return keras.Model(inputs, layers.Dense(3)(layers.Concatenate()(maxima)), name="text_cnn")


def _text_gru() -> Any:
    inputs, x = _embedded()
    return keras.Model(inputs, layers.Dense(3)(layers.Bidirectional(layers.GRU(8))(x)), name="text_gru")


def _attention_pooling() -> Any:
    inputs = keras.Input((_LENGTH, _WIDTH), name="features")
    x = layers.MultiHeadAttention(num_heads=2, key_dim=8)(inputs, inputs)
    x = layers.GlobalAveragePooling1D()(layers.LayerNormalization()(layers.Add()([inputs, x])))
    return keras.Model(inputs, layers.Dense(3)(x), name="attention_pooling")


def _transformer_encoder() -> Any:
    tokens = keras.Input((_LENGTH,), dtype="int32", name="tokens")
    mask = keras.Input((_LENGTH,), dtype="bool", name="mask")
    # Counted from the input: what depends on no input would be computed once, when the network is built.
    places = keras.ops.cumsum(keras.ops.ones_like(tokens), axis=1) - 1
    x = layers.Embedding(_WORDS, _WIDTH)(tokens) + layers.Embedding(_LENGTH, _WIDTH)(places)
    # Every word sees itself, so that no row of the softmax is empty.
    seen = keras.ops.logical_or(mask[:, None, :], keras.ops.eye(_LENGTH, dtype="bool")[None])
    for _ in range(2):
        x = layers.LayerNormalization()(x + layers.MultiHeadAttention(2, 8)(x, x, attention_mask=seen))
        inner = layers.Dense(_WIDTH)(layers.Dense(2 * _WIDTH, activation="relu")(x))
        x = layers.LayerNormalization()(x + inner)
    return keras.Model([tokens, mask], x, name="transformer_encoder")


def _seq2seq_attention() -> Any:
    given = keras.Input((10, 6), name="given")
    made = keras.Input((7, 5), name="made")
    memory = layers.LSTM(_WIDTH, return_sequences=True)(given)
    state = layers.LSTM(_WIDTH, return_sequences=True)(made)
    context = layers.Attention()([state, memory])
    return keras.Model([given, made], layers.Dense(4)(layers.Concatenate()([state, context])), name="seq2seq")


def _unet() -> Any:
    inputs = keras.Input((32, 32, 3), name="image")
    first = layers.Conv2D(8, 3, padding="same", activation="relu")(inputs)
    second = layers.Conv2D(16, 3, padding="same", activation="relu")(layers.MaxPooling2D()(first))
    deep = layers.Conv2D(24, 3, padding="same", activation="relu")(layers.AveragePooling2D(2)(second))
    up = layers.Conv2DTranspose(16, 2, strides=2)(deep)
    up = layers.Conv2D(8, 3, padding="same", activation="relu")(layers.Concatenate()([up, second]))
    up = layers.UpSampling2D(interpolation="bilinear")(up)
    return keras.Model(inputs, layers.Conv2D(2, 1)(layers.Concatenate()([up, first])), name="unet")


def _conv_lstm() -> Any:
    inputs = keras.Input((4, 8, 8, 2), name="frames")
    x = layers.ConvLSTM2D(4, 3, padding="same")(inputs)
    return keras.Model(inputs, layers.Dense(3)(layers.GlobalAveragePooling2D()(x)), name="conv_lstm")


def _embedded() -> tuple[Any, Any]:
    inputs = keras.Input((_LENGTH,), dtype="int32", name="tokens")
    return inputs, layers.Embedding(_WORDS, _WIDTH)(inputs)


NETWORKS: Mapping[str, Callable[[], Any]] = MappingProxyType(
    {
        "mlp": _mlp,
        "lstm": _lstm,
        "gru": _gru,
        "bidirectional-lstm": _bidirectional_lstm,
        "simple-rnn": _simple_rnn,
        "text-average": _text_average,
        "text-cnn": _text_cnn,
        "text-gru": _text_gru,
        "attention-pooling": _attention_pooling,
        "transformer-encoder": _transformer_encoder,
        "seq2seq-attention": _seq2seq_attention,
        "unet": _unet,
        "conv-lstm": _conv_lstm,
    }
)
"""Name -> function that builds the network; the names are those of `keras_architectures`."""
