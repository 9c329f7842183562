"""A TensorFlow model as one concrete function with named inputs, whatever it was made from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueport.adapters.sources.tensorflow_setup import import_tensorflow
from trueport.adapters.sources.wording import described
from trueport.core.errors import SourceError, UsageError

Array = NDArray[Any]


@dataclass(frozen=True)
class SourceInput:
    """One tensor that the function takes.

    Attributes:
        name: as users see it.
        tensor: name of the placeholder in the function's graph.
        shape: None for an axis of any size; None where not even the rank is known.
        dtype: NumPy's type.
    """

    name: str
    tensor: str
    shape: tuple[int | None, ...] | None
    dtype: np.dtype[Any]


@dataclass(frozen=True, eq=False)
class TensorFlowSource:
    """A concrete function.

    Attributes:
        function: the `ConcreteFunction`; its graph is what is followed and converted.
        inputs: in the order of its placeholders, captured tensors not among them.
        outputs: (name for users, tensor of the graph), in the order in which the structure flattens.
        owner: the model that holds the variables, kept alive with the function.
    """

    function: Any
    inputs: tuple[SourceInput, ...]
    outputs: tuple[tuple[str, str], ...]
    owner: Any

    @property
    def captures(self) -> dict[str, Any]:
        """Tensor of the graph -> the eager tensor or the handle that the function captured there."""
        return {inner.name: outer for outer, inner in self.function.graph.captures}

    def __call__(self, values: Mapping[str, Array]) -> list[Array]:
        """Returns the outputs of a plain run in the model's own types.

        Raises:
            SourceError: the model refuses the values.
        """
        tf = import_tensorflow()
        given = [tf.constant(values[i.name], tf.as_dtype(i.dtype)) for i in self.inputs]
        try:
            flat = self.function._call_flat(given, self.function.captured_inputs)
        except (tf.errors.OpError, ValueError, TypeError) as error:
            raise SourceError(f"the model fails on its inputs: {_short(error)}") from error
        results = flat if isinstance(flat, list | tuple) else tf.nest.flatten(flat)
        return [np.asarray(value.numpy()) for value in results if isinstance(value, tf.Tensor)]


def is_tensorflow(value: Any) -> bool:
    """Tells whether a value is a Keras model, a tf.function, a concrete function or a module that can be called."""
    tf = import_tensorflow()
    if is_keras(value) or _is_concrete(value) or _is_function(value):
        return True
    return isinstance(value, tf.Module) and callable(value)


def is_keras(value: Any) -> bool:
    """Tells whether a value is a Keras model."""
    return isinstance(value, import_tensorflow().keras.Model)


def traced(value: Any, args: tuple[Any, ...] | None, kwargs: Mapping[str, Any], where: str) -> TensorFlowSource:
    """Returns the source of a value that `is_tensorflow`.

    Args:
        value: the model.
        args: of a call, or None where only its declared signature tells what it takes.
        kwargs: of the same call.
        where: the value, for messages.

    Raises:
        UsageError: nothing tells what the model takes, or it cannot be traced.
        SourceError: it raises when it is traced.
    """
    tf = import_tensorflow()
    if _is_concrete(value):
        return source_of(value, value)
    try:
        with tf.device("/CPU:0"):
            if is_keras(value):
                function = _keras_function(value, args, kwargs, where)
            else:
                function = _function(value, args, kwargs, where)
    except UsageError:
        raise
    except Exception as error:
        raise SourceError(f"tracing {where} raised {type(error).__name__}: {_short(error)}") from error
    return source_of(function, value)


def source_of(function: Any, owner: Any) -> TensorFlowSource:
    """Returns the source of a concrete function.

    Raises:
        UsageError: it gives no tensors.
    """
    tf = import_tensorflow()
    captured = {inner.name for _, inner in function.graph.captures}
    fed = [t for t in function.inputs if t.name not in captured and t.dtype != tf.resource]
    signature = [s for s in tf.nest.flatten(function.structured_input_signature) if isinstance(s, tf.TensorSpec)]
    names = _input_names([s.name for s in signature] if len(signature) == len(fed) else [None] * len(fed), fed)
    inputs = tuple(SourceInput(n, t.name, _shape(t), _dtype(t)) for n, t in zip(names, fed, strict=True))
    tensors = [t for t in function.outputs if t.dtype not in (tf.resource, tf.variant)]
    if not tensors:
        raise UsageError("expected the TensorFlow function to return tensors; it returns none")
    outputs = tuple(zip(_output_names(function, tensors), (t.name for t in tensors), strict=True))
    return TensorFlowSource(function, inputs, outputs, owner)


# ---------------------------------------------------------------------- tracing


def _keras_function(model: Any, args: tuple[Any, ...] | None, kwargs: Mapping[str, Any], where: str) -> Any:
    tf = import_tensorflow()
    declared = _declared_inputs(model)
    if declared is not None and not kwargs:
        structure = getattr(model, "_inputs_struct", None)
        specs = [tf.TensorSpec(t.shape, t.dtype, _plain_name(t.name)) for t in declared]

        def call(*flat: Any) -> Any:
            packed = flat[0] if len(flat) == 1 else list(flat)
            if structure is not None and isinstance(structure, Mapping | list | tuple):
                packed = tf.nest.pack_sequence_as(structure, flat)
            return model(packed, training=False)

        return tf.function(call, input_signature=specs).get_concrete_function()
    if args is None:
        raise UsageError(
            f"expected {where} to declare its inputs (keras.Input) or to come with a call, as (model, args); "
            f"got {described(model)} without either"
        )
    return tf.function(lambda *a, **k: model(*a, training=False, **k)).get_concrete_function(
        *_specs(args), **_specs(dict(kwargs))
    )


def _declared_inputs(model: Any) -> list[Any] | None:
    try:
        declared = model.inputs
    except (AttributeError, ValueError):
        return None
    return list(declared) if declared else None


def _function(value: Any, args: tuple[Any, ...] | None, kwargs: Mapping[str, Any], where: str) -> Any:
    tf = import_tensorflow()
    function = value
    if not _is_function(value):
        function = value.__call__ if _is_function(getattr(value, "__call__", None)) else tf.function(value.__call__)  # noqa: B004
    if function.input_signature is not None:
        return function.get_concrete_function()
    if args is None:
        raise UsageError(
            f"expected {where} to have an input_signature or to come with a call, as (function, args); it has neither"
        )
    return function.get_concrete_function(*_specs(args), **_specs(dict(kwargs)))


def _specs(structure: Any) -> Any:
    """Returns the structure with a specification in place of every tensor; other values stay and become part of it."""
    tf = import_tensorflow()

    def spec(value: Any) -> Any:
        if isinstance(value, tf.Tensor | tf.Variable):
            return tf.TensorSpec(value.shape, value.dtype)
        if isinstance(value, np.ndarray | np.generic):
            return tf.TensorSpec(value.shape, tf.as_dtype(value.dtype))
        return value

    return tf.nest.map_structure(spec, structure)


def _is_concrete(value: Any) -> bool:
    from tensorflow.python.eager.polymorphic_function.concrete_function import ConcreteFunction

    return isinstance(value, ConcreteFunction)


def _is_function(value: Any) -> bool:
    from tensorflow.python.eager.polymorphic_function.polymorphic_function import Function

    return isinstance(value, Function)


# ---------------------------------------------------------------------- names


def _input_names(wanted: Sequence[str | None], fed: Sequence[Any]) -> list[str]:
    """Returns the names that the signature gives; the placeholder's where it gives none or one twice."""
    names: list[str] = []
    for name, tensor in zip(wanted, fed, strict=True):
        own = tensor.name.split(":")[0]
        names.append(name if name and name not in names else own if own not in names else f"{own}_{len(names)}")
    return names


def _output_names(function: Any, tensors: Sequence[Any]) -> list[str]:
    """Returns the keys of a dict of outputs, else the names of the nodes that give them."""
    structured = function.structured_outputs
    if isinstance(structured, Mapping) and len(structured) == len(tensors):
        return [str(key) for key in sorted(structured)]
    names: list[str] = []
    for tensor in tensors:
        name = tensor.name
        names.append(name if name not in names else f"{name}.{len(names)}")
    return names


def _plain_name(name: str) -> str:
    return name.split(":")[0]


def _shape(tensor: Any) -> tuple[int | None, ...] | None:
    return None if tensor.shape.rank is None else tuple(tensor.shape.as_list())


def _dtype(tensor: Any) -> np.dtype[Any]:
    dtype: np.dtype[Any] = np.dtype(tensor.dtype.as_numpy_dtype)
    return dtype


def _short(error: BaseException) -> str:
    """Returns the message on one line; of one with the user's traceback in it, the last line that says anything."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if not lines:
        return "no message"
    told = [line for line in lines if line.partition(":")[0].rpartition(".")[2].endswith(("Error", "Exception"))]
    return (told[-1] if lines[0] == "in user code:" and told else lines[0])[:400]
