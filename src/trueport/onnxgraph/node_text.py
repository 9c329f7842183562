"""A node as a short line: `Transpose(perm=[0, 2, 1]) x -> t`."""

from __future__ import annotations

from collections.abc import Iterable

import onnx

from trueport.onnxgraph.tensor_values import content_key, described_tensor

_LONGEST = 60


def node_line(node: onnx.NodeProto) -> str:
    """Returns operator, attributes, inputs and outputs of a node; long values are cut."""
    domain = "" if node.domain in ("", "ai.onnx") else f"{node.domain}::"
    attributes = ", ".join(f"{a.name}={attribute_text(a)}" for a in sorted(node.attribute, key=lambda a: a.name))
    call = f"{domain}{node.op_type}" + (f"({attributes})" if attributes else "")
    return f"{call} {_names(node.input)} -> {_names(node.output)}"


def attribute_text(attribute: onnx.AttributeProto) -> str:
    """Returns the value of an attribute, cut to a short text."""
    if attribute.ref_attr_name:
        return f"@{attribute.ref_attr_name}"
    kind = onnx.AttributeProto
    if attribute.type == kind.TENSOR:
        text = described_tensor(attribute.t)
    elif attribute.type == kind.GRAPH:
        text = f"graph of {len(attribute.g.node)} nodes"
    elif attribute.type in (kind.INT, kind.FLOAT, kind.STRING, kind.INTS, kind.FLOATS, kind.STRINGS):
        text = _plain(onnx.helper.get_attribute_value(attribute))
    else:
        text = kind.AttributeType.Name(attribute.type).lower()
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


def attribute_key(attribute: onnx.AttributeProto) -> tuple[str, bytes]:
    """Returns name and value for comparison; graphs count as nothing, since their nodes are compared for themselves."""
    if attribute.type in (onnx.AttributeProto.GRAPH, onnx.AttributeProto.GRAPHS):
        return attribute.name, b""
    if attribute.type == onnx.AttributeProto.TENSOR:
        return attribute.name, content_key(attribute.t)
    plain = onnx.AttributeProto()
    plain.CopyFrom(attribute)
    plain.doc_string = ""
    content: bytes = plain.SerializeToString(deterministic=True)
    return attribute.name, content


def _plain(value: object) -> str:
    if isinstance(value, bytes):
        return repr(value.decode(errors="replace"))
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, list):
        shown = ", ".join(_plain(item) for item in value[:9])
        return f"[{shown}{', ...' if len(value) > 9 else ''}]"
    return str(value)


def _names(names: Iterable[str]) -> str:
    shown = [name[:80] or "''" for name in names]
    return ", ".join(shown[:8]) + (f", ... {len(shown) - 8} more" if len(shown) > 8 else "")
