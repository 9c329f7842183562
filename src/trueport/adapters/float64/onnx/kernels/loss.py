"""Losses: the negative log-likelihood, alone and after softmax."""

from __future__ import annotations

import numpy as np

from trueport.adapters.float64.onnx.dtypes import Array
from trueport.adapters.float64.onnx.kernels.softmax import log_softmax
from trueport.adapters.float64.onnx.registry import Call, kernel


def _likelihood_loss(call: Call, logs: Array, target: Array, weight: Array | None) -> Array:
    ignored = call.attributes.get("ignore_index")
    kept = np.ones(target.shape, dtype=np.bool_) if ignored is None else target != ignored
    index = np.where(kept, target, 0)
    loss = -np.take_along_axis(logs, np.expand_dims(index, 1), axis=1)[:, 0]
    factor = (np.ones(target.shape) if weight is None else np.take(weight, index)) * kept
    loss = np.where(kept, loss * factor, 0.0)
    reduction = call.attributes["reduction"]
    if reduction == "none":
        return loss
    total = np.sum(loss)
    return np.asarray(total if reduction == "sum" else total / np.sum(factor))


@kernel("NegativeLogLikelihoodLoss")
def negative_log_likelihood(call: Call, logs: Array, target: Array, weight: Array | None = None) -> Array:
    """Returns the loss of log-probabilities."""
    return _likelihood_loss(call, logs, target, weight)


@kernel("SoftmaxCrossEntropyLoss")
def softmax_cross_entropy(call: Call, scores: Array, target: Array, weight: Array | None = None) -> tuple[Array, Array]:
    """Returns the loss of scores, and their log-probabilities."""
    logs = log_softmax(scores, 1)
    return _likelihood_loss(call, logs, target, weight), logs
