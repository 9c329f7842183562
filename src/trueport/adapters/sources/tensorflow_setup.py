"""Imports TensorFlow quietly: no log lines at import, no look-up of accelerators, as many threads as asked for."""

from __future__ import annotations

import os
from types import ModuleType

from trueport.core.errors import MissingToolError, UsageError

_QUIET = {"TF_CPP_MIN_LOG_LEVEL": "3", "TF_ENABLE_ONEDNN_OPTS": "0", "AUTOGRAPH_VERBOSITY": "0"}
INSTALL = "pip install 'trueport[tensorflow]'"


def quiet_environment() -> None:
    """Sets what TensorFlow reads when it is imported; settings of the user's own stay."""
    for name, value in _QUIET.items():
        os.environ.setdefault(name, value)


def import_tensorflow(threads: int | None = None) -> ModuleType:
    """Returns the package, with its own messages off and computing on the processor only.

    Args:
        threads: within one operator; takes effect only before TensorFlow computes anything in this process.

    Raises:
        MissingToolError: TensorFlow is not installed.
    """
    quiet_environment()
    try:
        import tensorflow as tf
    except ImportError as error:
        raise MissingToolError("tensorflow", INSTALL) from error
    tf.get_logger().setLevel("ERROR")
    try:
        tf.config.set_visible_devices([], "GPU")
        if threads is not None:
            tf.config.threading.set_intra_op_parallelism_threads(threads)
            tf.config.threading.set_inter_op_parallelism_threads(threads)
    except RuntimeError:  # it has computed already, and takes no other settings
        pass
    module: ModuleType = tf
    return module


def require_tensorflow_backend(where: str) -> None:
    """Refuses to go on where Keras computes with another framework.

    Args:
        where: the model, for messages.

    Raises:
        UsageError: so it does.
    """
    advice = "set KERAS_BACKEND=tensorflow (or `backend` in ~/.keras/keras.json)"
    wanted = os.environ.get("KERAS_BACKEND") or "another one"
    try:
        import keras
    except ImportError as error:
        raise UsageError(f"expected Keras to run {where} on TensorFlow; its backend is {wanted}, which cannot be "
                         f"imported ({error}): {advice}") from error  # fmt: skip
    backend = keras.config.backend()
    if backend != "tensorflow":
        raise UsageError(f"expected Keras to run {where} on TensorFlow; its backend is {backend}: {advice}")
