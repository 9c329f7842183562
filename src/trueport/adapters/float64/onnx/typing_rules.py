"""Static element types: which type each output of a node is declared to have.

ONNX is statically typed, so the real type of every value is known when the model is read. During evaluation values
carry no mark; each step knows the types of its outputs.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import onnx
from onnx import AttributeProto, defs

from trueport.adapters.float64.onnx.dtypes import NAMES, elem_type, is_float

Types = Sequence[str]
Attributes = Mapping[str, AttributeProto]
Rule = Callable[[Types, Attributes], "list[str]"]

_BY_TEXT = {
    "float": "float32", "double": "float64", "int8": "int8", "int16": "int16", "int32": "int32", "int64": "int64",
    "uint8": "uint8", "uint16": "uint16", "uint32": "uint32", "uint64": "uint64", "bool": "bool", "string": "str",
    "float16": "float16", "bfloat16": "bfloat16",
}  # fmt: skip


@functools.lru_cache(maxsize=4096)
def find_schema(op_type: str, domain: str, opset: int) -> Any | None:
    """Returns the schema of an operator at an operator-set version, or None where there is none."""
    try:
        return defs.get_schema(op_type, opset, domain)
    except defs.SchemaError:
        return None


def output_types(op_type: str, schema: Any | None, inputs: Types, attributes: Attributes, count: int) -> list[str]:
    """Returns the declared element type of each of `count` outputs, empty where it cannot be told."""
    rule = _RULES.get(op_type)
    if rule is not None:
        found = rule(inputs, attributes)
    elif schema is not None:
        found = _from_schema(schema, inputs, count)
    else:
        found = [_first_float(inputs)] * count
    return (found + [found[-1] if found else ""] * count)[:count]


def _first_float(inputs: Types) -> str:
    return next((name for name in inputs if is_float(name)), inputs[0] if inputs else "")


@dataclass(frozen=True, slots=True)
class _Signature:
    """The type parameters of an operator: those of its inputs, and for each output its own and what it must be."""

    inputs: tuple[str, ...]
    variadic_input: bool
    outputs: tuple[tuple[str, str], ...]
    variadic_output: bool

    def parameter(self, index: int) -> str:
        """Returns the type parameter of an input, empty behind the last."""
        if index < len(self.inputs):
            return self.inputs[index]
        return self.inputs[-1] if self.variadic_input and self.inputs else ""

    def output(self, index: int) -> tuple[str, str]:
        """Returns type parameter and only possible type of an output, both empty behind the last."""
        if index < len(self.outputs):
            return self.outputs[index]
        return self.outputs[-1] if self.variadic_output and self.outputs else ("", "")


_SIGNATURES: dict[tuple[str, str, int], _Signature] = {}


def _signature(schema: Any) -> _Signature:
    # Reading a schema takes half a millisecond, mostly for its lists of types.
    key = (schema.domain, schema.name, schema.since_version)
    if key not in _SIGNATURES:
        allowed = {c.type_param_str: list(c.allowed_type_strs) for c in schema.type_constraints}
        inputs, outputs = list(schema.inputs), list(schema.outputs)
        texts = [formal.type_str for formal in outputs]
        choices = [allowed.get(text, [text]) for text in texts]
        variadic = defs.OpSchema.FormalParameterOption.Variadic
        _SIGNATURES[key] = _Signature(
            tuple(formal.type_str for formal in inputs),
            bool(inputs) and inputs[-1].option == variadic,
            tuple((t, _parse(c[0]) if len(c) == 1 else "") for t, c in zip(texts, choices, strict=True)),
            bool(outputs) and outputs[-1].option == variadic,
        )
    return _SIGNATURES[key]


def _from_schema(schema: Any, inputs: Types, count: int) -> list[str]:
    signature = _signature(schema)
    bound: dict[str, str] = {}
    for index, name in enumerate(inputs):
        if name:
            bound.setdefault(signature.parameter(index), name)
    bound.pop("", None)
    outputs = [signature.output(index) for index in range(count)]
    return [bound.get(text) or single for text, single in outputs]


def _parse(text: str) -> str:
    inner = text.rsplit("(", 1)[-1].rstrip(")")
    return _BY_TEXT.get(inner, "")


def _attribute_type(name: str, default: int) -> Rule:
    def rule(inputs: Types, attributes: Attributes) -> list[str]:
        del inputs
        return [NAMES.get(attributes[name].i if name in attributes else default, "")]

    return rule


def _same_as(index: int) -> Rule:
    def rule(inputs: Types, attributes: Attributes) -> list[str]:
        del attributes
        return [inputs[index] if index < len(inputs) else ""]

    return rule


def _with_statistics(inputs: Types, attributes: Attributes) -> list[str]:
    stash = attributes["stash_type"].i if "stash_type" in attributes else onnx.TensorProto.FLOAT
    return [inputs[0], NAMES.get(stash, ""), NAMES.get(stash, "")]


def _constant_of_shape(inputs: Types, attributes: Attributes) -> list[str]:
    del inputs
    return [NAMES[attributes["value"].t.data_type] if "value" in attributes else "float32"]


def _like_or_attribute(inputs: Types, attributes: Attributes) -> list[str]:
    return [NAMES[attributes["dtype"].i] if "dtype" in attributes else inputs[0]]


def _quantized(inputs: Types, attributes: Attributes) -> list[str]:
    if "output_dtype" in attributes and attributes["output_dtype"].i:
        return [NAMES.get(attributes["output_dtype"].i, "")]
    return [inputs[2] if len(inputs) > 2 and inputs[2] else "uint8"]


def _dequantized(inputs: Types, attributes: Attributes) -> list[str]:
    if "output_dtype" in attributes and attributes["output_dtype"].i:
        return [NAMES.get(attributes["output_dtype"].i, "")]
    return [inputs[1] if len(inputs) > 1 else ""]


def _optional(inputs: Types, attributes: Attributes) -> list[str]:
    if inputs:
        return [inputs[0]]
    return [elem_type(attributes["type"].tp)] if "type" in attributes else [""]


_FLOAT = int(onnx.TensorProto.FLOAT)
_RULES: dict[str, Rule] = {
    "Cast": _attribute_type("to", 0),
    "BitCast": _attribute_type("to", 0),
    "CastLike": _same_as(1),
    "ConstantOfShape": _constant_of_shape,
    "EyeLike": _like_or_attribute,
    "HannWindow": _attribute_type("output_datatype", _FLOAT),
    "HammingWindow": _attribute_type("output_datatype", _FLOAT),
    "BlackmanWindow": _attribute_type("output_datatype", _FLOAT),
    "MelWeightMatrix": _attribute_type("output_datatype", _FLOAT),
    "SequenceEmpty": _attribute_type("dtype", _FLOAT),
    "SequenceConstruct": _same_as(0),
    "SequenceAt": _same_as(0),
    "SequenceInsert": _same_as(0),
    "SequenceErase": _same_as(0),
    "SplitToSequence": _same_as(0),
    "ConcatFromSequence": _same_as(0),
    "Optional": _optional,
    "OptionalGetElement": _same_as(0),
    "LayerNormalization": _with_statistics,
    "QuantizeLinear": _quantized,
    "DequantizeLinear": _dequantized,
    "RandomNormal": _attribute_type("dtype", _FLOAT),
    "RandomUniform": _attribute_type("dtype", _FLOAT),
    "RandomNormalLike": _like_or_attribute,
    "RandomUniformLike": _like_or_attribute,
    "Bernoulli": _like_or_attribute,
    "Multinomial": _attribute_type("dtype", int(onnx.TensorProto.INT32)),
}
