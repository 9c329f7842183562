"""Operators that are defined as graphs of others: local functions and the function bodies of the ONNX standard."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import onnx
from onnx import AttributeProto, FunctionProto, NodeProto

from trueport.adapters.float64.onnx.dtypes import CODES
from trueport.adapters.float64.onnx.registry import Call


def with_defaults(schema: Any, attributes: Mapping[str, AttributeProto]) -> dict[str, AttributeProto]:
    """Returns the attributes with the defaults of the operator's schema added; these are float32, as in a file."""
    return {**_defaults(schema), **attributes}


_DEFAULTS: dict[tuple[str, str, int], dict[str, AttributeProto]] = {}


def _defaults(schema: Any) -> dict[str, AttributeProto]:
    key = (schema.domain, schema.name, schema.since_version)
    if key not in _DEFAULTS:
        values = {name: formal.default_value for name, formal in schema.attributes.items()}
        _DEFAULTS[key] = {name: value for name, value in values.items() if value.type != AttributeProto.UNDEFINED}
    return _DEFAULTS[key]


def definition(schema: Any, opset: int, node: NodeProto, types: Sequence[str]) -> FunctionProto | None:
    """Returns the function body of a standard operator for inputs of the given types, or None where it has none."""
    if schema.has_function:
        body = schema.function_body
    elif schema.has_context_dependent_function:
        body = _context_dependent(schema, opset, node, types)
    else:
        return None
    if body is None or not body.node:
        return None
    function = FunctionProto()
    function.CopyFrom(body)
    if not function.opset_import:
        function.opset_import.append(onnx.helper.make_opsetid(schema.domain, opset))
    return function


def _context_dependent(schema: Any, opset: int, node: NodeProto, types: Sequence[str]) -> FunctionProto | None:
    versions = [v for v in schema.context_dependent_function_opset_versions if v <= opset]
    if not versions:
        return None
    protos = [onnx.helper.make_tensor_type_proto(CODES.get(t, 1), None).SerializeToString() for t in types]
    try:
        data = schema.get_context_dependent_function_with_opset_version(max(versions), node.SerializeToString(), protos)
    except (RuntimeError, ValueError):
        return None
    return FunctionProto.FromString(data) if data else None


def call_body(call: Call, bodies: Mapping[str, Callable[..., list[Any]]], *arguments: Any) -> tuple[Any, ...]:
    """Returns the outputs of a function."""
    del call
    return tuple(bodies["body"](*arguments))
