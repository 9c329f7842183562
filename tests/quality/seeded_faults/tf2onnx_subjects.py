"""The TensorFlow models that meet the faults planted in tf2onnx: small, with outputs that show them."""

from typing import Any

import numpy as np


def network() -> Any:
    """A Keras network: convolutions that pad unevenly, normalization, two outputs of one shape."""
    import keras

    layers = keras.layers
    image = keras.Input((8, 8, 3), batch_size=2, name="image")
    x = layers.Conv2D(4, 3, strides=2, padding="same")(image)
    x = layers.BatchNormalization(epsilon=0.1)(x)
    x = layers.LeakyReLU(negative_slope=0.3)(x)
    x = layers.Conv2D(4, 3, padding="same", activation="sigmoid")(x)
    x = layers.AveragePooling2D(2)(x)
    x = layers.Flatten()(x)
    model = keras.Model(image, [layers.Dense(5, activation="softmax")(x), layers.Dense(5, activation="tanh")(x)])
    rng = np.random.default_rng(7)
    for variable in model.weights:
        if variable.path.endswith(("gamma", "moving_variance")):
            variable.assign(rng.uniform(0.5, 1.5, variable.shape))
        else:
            scale = np.sqrt(max(np.prod(variable.shape[:-1]), 1))
            variable.assign(rng.standard_normal(variable.shape) / scale)
    return model


def arithmetic() -> Any:
    """A `tf.Module` whose operands, axes, attributes, duplicates and transposition all matter."""
    import tensorflow as tf

    class Arithmetic(tf.Module):  # type: ignore[misc, unused-ignore]
        def __init__(self) -> None:
            super().__init__()
            rng = np.random.default_rng(11)
            self.weight = tf.Variable(rng.standard_normal((4, 4)), dtype=tf.float32)
            self.bias = tf.Variable(tf.zeros(4))
            self.bias.assign(rng.standard_normal(4))

        @tf.function(input_signature=[tf.TensorSpec([4, 4], name="x"), tf.TensorSpec([4, 4], name="z")])
        def __call__(self, x: Any, z: Any) -> Any:
            h = tf.matmul(x - z, self.weight, transpose_b=True) + self.bias
            sloped = tf.nn.leaky_relu(h, 0.3) + 2.0 * tf.nn.leaky_relu(h, 0.1)
            turned = tf.transpose(tf.nn.softmax(sloped)) * x
            return tf.concat([turned, tf.tanh(h)], axis=-1), tf.reduce_max(x * h, axis=1), tf.cast(x > z, tf.int64)

    return Arithmetic()
