"""The operators of `ai.onnx.ml` that stand around models: encoders, thresholds, scales."""

from __future__ import annotations

from typing import Any

import numpy as np

from trueport.adapters.float64.onnx.dtypes import Array, held_dtype
from trueport.adapters.float64.onnx.registry import Call, kernel

MACHINE_LEARNING = "ai.onnx.ml"


@kernel("ArrayFeatureExtractor", domain=MACHINE_LEARNING, selects=True)
def array_feature_extractor(call: Call, x: Array, indices: Array) -> Array:
    """Returns the elements of the last axis at the indices."""
    del call
    wide = x.reshape(1, -1) if x.ndim == 1 else x
    return np.take(wide, indices.ravel(), axis=-1)


@kernel("Binarizer", domain=MACHINE_LEARNING, selects=True)
def binarizer(call: Call, x: Array) -> Array:
    """Returns 1 where x is larger than the threshold, else 0."""
    return np.asarray(x > call.attributes.get("threshold", 0.0)).astype(x.dtype)


@kernel("Scaler", domain=MACHINE_LEARNING)
def scaler(call: Call, x: Array) -> Array:
    """Returns (x - offset) * scale, one of each for all features or for each."""
    attributes = call.attributes
    offset, scale = (np.asarray(attributes.get(n) or [d], np.float64) for n, d in (("offset", 0.0), ("scale", 1.0)))
    return np.asarray((x.astype(np.float64) - offset) * scale)


@kernel("LabelEncoder", domain=MACHINE_LEARNING, selects=True, supports=lambda call: call.opset >= 2)
def label_encoder(call: Call, x: Array) -> Array:
    """Returns for each element the value that belongs to it as a key, or the default; a NaN is a key like others."""
    attributes = call.attributes
    keys, values = _list(attributes, "keys"), _list(attributes, "values")
    default = _default(attributes)
    table: dict[Any, Any] = {}
    for key, value in zip(keys, values, strict=True):
        table.setdefault(_key(key), value)
    found = [table.get(_key(item), default) for item in x.ravel().tolist()]
    dtype = held_dtype(call.output_types[0] or "str")
    return np.asarray(found, dtype=dtype).reshape(x.shape)


def _key(value: Any) -> Any:
    return "nan" if isinstance(value, float) and np.isnan(value) else (value,)


def _list(attributes: Any, name: str) -> list[Any]:
    for kind in ("tensor", "strings", "int64s", "floats"):
        found = attributes.get(f"{name}_{kind}")
        if found is not None and len(found):
            return list(np.asarray(found).ravel().tolist()) if kind == "tensor" else list(found)
    raise ValueError(f"expected one of the attributes {name}_*, found none")


def _default(attributes: Any) -> Any:
    if attributes.get("values_tensor") is not None:
        given = attributes.get("default_tensor")
        if given is not None and np.size(given):
            return np.asarray(given).ravel().tolist()[0]
        kind = np.asarray(attributes["values_tensor"]).dtype.kind
        return "_Unused" if kind in "OUS" else -1 if kind in "iu" else -0.0
    if attributes.get("values_strings"):
        return attributes.get("default_string", "_Unused")
    return (
        attributes.get("default_int64", -1)
        if attributes.get("values_int64s")
        else attributes.get("default_float", -0.0)
    )
