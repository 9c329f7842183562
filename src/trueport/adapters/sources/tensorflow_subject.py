"""Makes a subject of a TensorFlow source, wherever it came from."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from trueport.adapters.sources.registry import SourceRequest
from trueport.adapters.sources.tensorflow_examples import Call, choose_examples
from trueport.adapters.sources.tensorflow_source import TensorFlowSource, traced
from trueport.core.subject import Subject


def subject_of_tensorflow(
    value: Any,
    args: tuple[Any, ...] | None,
    kwargs: Mapping[str, Any],
    given: Any,
    *,
    name: str,
    sha256: str,
    request: SourceRequest,
    where: str,
    export_options: Mapping[str, Any] = MappingProxyType({}),
) -> Subject:
    """Returns the subject of a Keras model, a tf.function, a concrete function or a tf.Module that can be called.

    Args:
        value: the model.
        args: of a call that tells what it takes, or None where its signature does.
        kwargs: of the same call.
        given: input sets in the forms of `tensorflow_examples.examples_of`; None for `args` and `kwargs`, or, without
            these, for inputs drawn from the signature.
        name: for people.
        sha256: of what defines the model.
        request: its `spec` is the origin.
        where: the value, for messages.
        export_options: options of the converter.

    Raises:
        UsageError: nothing tells what the model takes, or inputs do not fit.
        SourceError: the model raises when it is traced.
    """
    source = traced(value, args, kwargs, where)
    if given is None and args is not None:
        given = Call(args, kwargs)
    return subject_of_source(
        source, given, name=name, sha256=sha256, request=request, where=f"the inputs of {where}",
        export_options=export_options,
    )  # fmt: skip


def subject_of_source(
    source: TensorFlowSource,
    given: Any,
    *,
    name: str,
    sha256: str,
    request: SourceRequest,
    where: str,
    export_options: Mapping[str, Any] = MappingProxyType({}),
) -> Subject:
    """Returns the subject of a function that is traced already; see `subject_of_tensorflow`."""
    return Subject(
        name=name,
        framework="tensorflow",
        origin=request.spec,
        sha256=sha256,
        model=source,
        examples=choose_examples(source, given, request, where),
        export_options=dict(export_options),
    )


def sha256_of_variables(kind: str, variables: Any) -> str:
    """Returns the SHA-256 of a name, and of type, shape and bytes of every variable, in their order.

    Names of variables do not count: Keras numbers its layers by what was built before in the process.
    """
    digest = hashlib.sha256(f"{kind}\n".encode())
    for variable in variables:
        value = variable.numpy()
        digest.update(f"{value.dtype} {list(value.shape)}\n".encode())
        digest.update(value.tobytes())
    return digest.hexdigest()
