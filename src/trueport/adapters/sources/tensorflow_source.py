"""A TensorFlow model as one concrete function with named inputs, whatever it was made from."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueport.adapters.sources.tensorflow_setup import import_tensorflow, require_tensorflow_backend
from trueport.adapters.sources.wording import described
from trueport.core.errors import SourceError, UsageError

Array = NDArray[Any]
_COMPONENTS = {"RaggedTensor": ("values", "row_splits"), "SparseTensor": ("indices", "values", "dense_shape")}


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
        results = tf.nest.flatten(flat, expand_composites=True)
        return [np.asarray(value.numpy()) for value in results if isinstance(value, tf.Tensor) and _is_output(value)]


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
    if is_keras(value):
        require_tensorflow_backend(where)
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
    tensors = [t for t in function.outputs if _is_output(t)]
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
        args = (_recorded_input(model, where),)
    return tf.function(lambda *a, **k: model(*a, training=False, **k)).get_concrete_function(
        *_specs(args), **_specs(dict(kwargs))
    )


def _recorded_input(model: Any, where: str) -> Any:
    """Returns the one argument of a model that was called before, as Keras recorded its shapes: batches of any size.

    Raises:
        UsageError: it was not called, or Keras did not record all that it takes: further arguments, types of integers.
    """
    tf = import_tensorflow()
    advice = "return the model with a call, as (model, args), or declare its inputs (keras.Input)"
    shapes = getattr(model, "_build_shapes_dict", None)
    if not shapes or not getattr(model, "_called", False):
        raise UsageError(
            f"expected {where} to declare its inputs (keras.Input), to have been called, or to come with a call; got "
            f"{described(model)} without any: {advice}"
        )
    taken = [name for name in inspect.signature(model.call).parameters if name not in ("training", "mask")]
    if len(taken) != 1 or len(shapes) != 1:
        raise UsageError(f"{where} takes {', '.join(taken)}, of which Keras recorded only a part: {advice}")
    if any(isinstance(layer, tf.keras.layers.Embedding) for layer in model._flatten_layers()):
        raise UsageError(
            f"{where} reads indices, and Keras records the shapes of a model's inputs but not their types: {advice}"
        )

    def spec(shape: Any) -> Any:
        if isinstance(shape, Mapping):
            return {key: spec(item) for key, item in shape.items()}
        if all(size is None or isinstance(size, int) for size in shape):
            return tf.TensorSpec((None, *shape[1:]) if shape else (), model.input_dtype)
        return type(shape)(spec(item) for item in shape)

    return spec(next(iter(shapes.values())))


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
    """Returns the paths of a dict of outputs, such as `box.scores` or `words.row_splits`, else the nodes' names."""
    from tensorflow.python.util import nest

    structured = function.structured_outputs
    wanted = [tensor.name for tensor in tensors]
    if isinstance(structured, Mapping):
        found = nest.flatten_with_tuple_paths(structured, expand_composites=True)
        paths = [_dotted(path) for path, leaf in found if hasattr(leaf, "dtype") and _is_output(leaf)]
        wanted = paths if len(paths) == len(tensors) else wanted
    names: list[str] = []
    for name in wanted:
        names.append(name if name not in names else f"{name}.{len(names)}")
    return names


def _dotted(path: Sequence[Any]) -> str:
    """Returns a path with a name for each part; a tensor of several tensors has its class and a number in it."""
    parts: list[str] = []
    for part in path:
        known = _COMPONENTS.get(parts[-1]) if parts else None
        if known is not None and isinstance(part, int):
            parts[-1] = known[part] if part < len(known) else str(part)
        else:
            parts.append(str(part))
    return ".".join(parts)


def _is_output(tensor: Any) -> bool:
    tf = import_tensorflow()
    return tensor.dtype not in (tf.resource, tf.variant)


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
