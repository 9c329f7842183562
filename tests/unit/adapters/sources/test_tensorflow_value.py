"""TensorFlow and Keras models in Python files: forms, names, examples, dynamic axes."""

from __future__ import annotations

from types import MappingProxyType

import numpy as np
import pytest

from trueport.adapters.sources.python_file import load
from trueport.adapters.sources.registry import SourceRequest
from trueport.adapters.sources.tensorflow_leaves import tensorflow_axes, tensorflow_given, tensorflow_leaves
from trueport.adapters.sources.tensorflow_setup import import_tensorflow
from trueport.core.errors import SourceError, UsageError
from trueport.core.options import DynamicAxis as RequestedAxis

import_tensorflow()

FILE = """
import numpy as np
import tensorflow as tf

SPEC = tf.TensorSpec((None, 3), tf.float32, "x")
signed = tf.function(lambda x: x * 2, input_signature=[SPEC])
concrete = signed.get_concrete_function()

def unsigned():
    return tf.function(lambda x: x * 2)

def with_args():
    return tf.function(lambda x, times: x * times), (np.ones((2, 3), np.float32), 3)

def with_further():
    return signed, (tf.ones((2, 3)),)
with_further.inputs = [(tf.zeros((4, 3)),)]

def keras_text():
    ids = tf.keras.Input((4,), name="ids", dtype="int32")
    return tf.keras.Model(ids, tf.keras.layers.Dense(2)(tf.keras.layers.Embedding(7, 3)(ids)))

TABLE = tf.reshape(tf.range(20.0), (10, 2))
IDS = [tf.TensorSpec((4,), tf.int32, "ids")]

def shifted_up():
    return tf.function(lambda ids: tf.gather(TABLE, ids + 2), input_signature=IDS)

def shifted_down():
    return tf.function(lambda ids: tf.gather(TABLE, tf.cast(tf.constant(-3) + ids, tf.int64)), input_signature=IDS)

def both_ways():
    return tf.function(lambda ids: (tf.gather(TABLE, ids), tf.gather(TABLE, ids - 1)), input_signature=IDS)

def shifted_by_another():
    return tf.function(lambda ids: tf.gather(TABLE, ids + tf.reduce_sum(ids)), input_signature=IDS)

def shifted_by_each():
    return tf.function(lambda ids: tf.gather(TABLE, ids + tf.constant([0, 1, 2, 3])), input_signature=IDS)

def chosen():
    return tf.function(lambda ids: tf.gather(TABLE, tf.where(ids > 5, ids, 0)), input_signature=IDS)

def keras_dict():
    a, b = tf.keras.Input((4,), name="a"), tf.keras.Input((4,), name="b")
    return tf.keras.Model({"b": b, "a": a}, {"second": a + b, "first": a - 2 * b})

class Scaled(tf.Module):
    def __init__(self):
        super().__init__()
        self.weight = tf.Variable(tf.ones((3, 2)))
    def __call__(self, x):
        return x @ self.weight

def module():
    return Scaled(), (tf.ones((5, 3)),)

class Nested(tf.keras.Model):
    def call(self, x, training=False):
        return x["u"] * 2 + x["v"] + (100.0 if training else 0.0)

def structured():
    return Nested(), ({"u": tf.ones((2, 3)), "v": tf.zeros((2, 3))},)

def undeclared():
    return Nested()

def called():
    model = Nested()
    model({"u": tf.ones((2, 3)), "v": tf.zeros((2, 3))})
    return model

class Two(tf.keras.Model):
    def call(self, x, y):
        return x - 2 * y

def called_with_two():
    model = Two()
    model(tf.ones((2, 3)), tf.zeros((2, 3)))
    return model

class Looking(tf.keras.Model):
    def __init__(self):
        super().__init__()
        self.table = tf.keras.layers.Embedding(5, 2)
    def call(self, ids):
        return self.table(ids)

def called_with_ids():
    model = Looking()
    model(tf.zeros((2, 3), tf.int32))
    return model

def nested_outputs():
    def outputs(x):
        return {"b": {"y": x, "x": x * 2}, "a": [x + 1, None], "c": {}}
    return tf.function(outputs, input_signature=[SPEC])

def ragged_output():
    def outputs(x):
        return {"r": tf.RaggedTensor.from_row_splits(x, [0, 1, 2]), "s": tf.sparse.from_dense(x)}
    return tf.function(outputs, input_signature=[tf.TensorSpec((2, 3), tf.float32)])

def tuple_of_dicts():
    return tf.function(lambda x: (x, {"k": x * 2}), input_signature=[SPEC])

def masked():
    def total(ids, mask):
        return tf.reduce_sum(ids * mask)
    spec = [tf.TensorSpec((None, None), tf.int32, name) for name in ("ids", "mask")]
    return tf.function(total, input_signature=spec)

def refusing():
    return tf.function(lambda x: tf.reshape(x, (7,)), input_signature=[tf.TensorSpec((2,), tf.float32)])

def nothing():
    return tf.function(lambda x: None, input_signature=[SPEC])

def _weighted(z, a, *, m, b=None):
    total = z - 2 * a + 3 * m["q"] - 4 * m["p"]
    return total if b is None else total + 5 * b

def with_kwargs():
    ones = tf.ones((2,))
    return tf.function(_weighted), (ones,), {"m": {"q": ones, "p": 2 * ones}, "b": 3 * ones, "a": 4 * ones}

def with_kwargs_twice():
    ones = tf.ones((2,))
    return tf.function(lambda z, a: z - 2 * a), (), {"z": ones, "a": 4 * ones}
with_kwargs_twice.inputs = [{"a": tf.zeros((2,)), "z": tf.ones((2,))}]

def foreign_names():
    spec = [tf.TensorSpec((2,), tf.float32, name) for name in ("first", "second")]
    return tf.function(lambda z, a: z - 2 * a, input_signature=spec)
foreign_names.inputs = {"z": tf.ones((2,)), "a": tf.zeros((2,))}

def strange_names():
    return foreign_names()
strange_names.inputs = [{"q": tf.ones((2,)), "p": tf.zeros((2,))}]

class Called(tf.keras.Model):
    def call(self, z, a=None, training=False):
        return z - 2 * a

def keras_kwargs():
    return Called(), (), {"z": tf.ones((2, 3)), "a": tf.fill((2, 3), 4.0)}

def too_many():
    return signed, (tf.ones((2, 3)), tf.ones((2, 3)))
"""


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("values") / "model.py"
    path.write_text(FILE)
    return path


def _loaded(file, name, **options):
    given = {"inputs": None, "input_shapes": MappingProxyType({}), **options}
    return load(SourceRequest(f"{file}:{name}", False, given["inputs"], given["input_shapes"], 0))


@pytest.mark.parametrize("name", ["signed", "concrete"])
def test_a_function_with_a_signature_needs_no_inputs(file, name):
    subject = _loaded(file, name)
    values = subject.examples[0].kwargs
    assert values["x"].shape == (2, 3)
    np.testing.assert_array_equal(subject.model(values)[0], values["x"] * 2)
    assert [(a.input, a.axis, a.symbol) for a in tensorflow_axes(subject)] == [("x", 0, "batch")]


def test_a_function_without_signature_needs_args(file):
    with pytest.raises(UsageError, match="input_signature or to come with a call"):
        _loaded(file, "unsigned")


def test_python_numbers_in_args_become_part_of_the_function(file):
    subject = _loaded(file, "with_args")
    assert list(subject.examples[0].kwargs) == ["x"]
    np.testing.assert_array_equal(subject.model(subject.examples[0].kwargs)[0], np.full((2, 3), 3, np.float32))
    assert tensorflow_axes(subject) == []


def test_further_inputs_follow_the_call(file):
    subject = _loaded(file, "with_further")
    assert [e.label for e in subject.examples] == ["example", "inputs[0]"]
    assert [tuple(a.shape for a in arrays) for arrays in tensorflow_given(subject)] == [((4, 3),)]


def test_indices_stay_within_their_table(file):
    (leaf,) = tensorflow_leaves(_loaded(file, "keras_text"))
    assert leaf.domain is not None
    assert (leaf.domain.low, leaf.domain.high) == (0, 6)
    assert leaf.example.max() <= 6


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("shifted_up", (-2, 7)),
        ("shifted_down", (3, 12)),
        ("both_ways", (1, 9)),
        ("shifted_by_another", None),
        ("shifted_by_each", (0, 6)),
        ("chosen", (0, 9)),
    ],
)
def test_what_is_added_to_indices_shifts_their_range(file, name, expected):
    (leaf,) = tensorflow_leaves(_loaded(file, name))
    assert (None if leaf.domain is None else (leaf.domain.low, leaf.domain.high)) == expected
    if expected is not None:
        assert expected[0] <= leaf.example.min() <= leaf.example.max() <= expected[1]


def test_a_dict_of_inputs_is_fed_by_name(file):
    subject = _loaded(file, "keras_dict")
    values = {"a": np.full((2, 4), 5, np.float32), "b": np.full((2, 4), 1, np.float32)}
    named = {name: value for (name, _), value in zip(subject.model.outputs, subject.model(values), strict=True)}
    np.testing.assert_array_equal(named["first"], np.full((2, 4), 3))
    np.testing.assert_array_equal(named["second"], np.full((2, 4), 6))


def test_a_module_is_traced_with_its_args(file):
    subject = _loaded(file, "module")
    np.testing.assert_array_equal(subject.model(subject.examples[0].kwargs)[0], np.full((5, 2), 3))


def test_a_keras_model_runs_for_inference(file):
    subject = _loaded(file, "structured")
    np.testing.assert_array_equal(subject.model(subject.examples[0].kwargs)[0], np.full((2, 3), 2))


def test_a_keras_model_without_inputs_needs_args(file):
    with pytest.raises(UsageError, match=r"declare its inputs"):
        _loaded(file, "undeclared")


def test_a_keras_model_that_was_called_is_run_on_batches_of_what_it_saw(file):
    subject = _loaded(file, "called")
    assert [i.shape for i in subject.model.inputs] == [(None, 3)] * 2
    values = {name: np.ones((4, 3), np.float32) for name in subject.examples[0].kwargs}
    np.testing.assert_array_equal(subject.model(values)[0], np.full((4, 3), 3))


@pytest.mark.parametrize(
    ("name", "message"), [("called_with_ids", "reads indices"), ("called_with_two", "takes x, y, of which")]
)
def test_what_keras_does_not_record_is_not_guessed(file, name, message):
    with pytest.raises(UsageError, match=rf"{message}.*\(model, args\)"):
        _loaded(file, name)


def test_outputs_in_dicts_are_named_by_their_paths(file):
    model = _loaded(file, "nested_outputs").model
    values = model({"x": np.ones((2, 3), np.float32)})
    named = {name: value[0, 0] for (name, _), value in zip(model.outputs, values, strict=True)}
    assert named == {"a.0": 2, "b.x": 2, "b.y": 1}


def test_tensors_of_several_tensors_are_outputs(file):
    subject = _loaded(file, "ragged_output")
    values = subject.model(subject.examples[0].kwargs)
    names = [name for name, _ in subject.model.outputs]
    assert names == ["r.values", "r.row_splits", "s.indices", "s.values", "s.dense_shape"]
    assert [v.shape for v in values] == [(2, 3), (3,), (6, 2), (6,), (2,)]
    np.testing.assert_array_equal(values[1], [0, 1, 2])


def test_a_dict_within_a_tuple_is_no_less_an_output(file):
    subject = _loaded(file, "tuple_of_dicts")
    values = subject.model(subject.examples[0].kwargs)
    assert len(values) == len(subject.model.outputs) == 2
    np.testing.assert_array_equal(values[1], 2 * values[0])


def test_another_backend_of_keras_is_refused(file, monkeypatch):
    import keras

    monkeypatch.setattr(keras.config, "backend", lambda: "torch")
    with pytest.raises(UsageError, match="its backend is torch: set KERAS_BACKEND=tensorflow"):
        _loaded(file, "structured")


def test_axes_of_one_size_vary_together(file):
    symbols = {(a.input, a.axis): a.symbol for a in tensorflow_axes(_loaded(file, "masked"))}
    assert symbols == {("ids", 0): "batch", ("ids", 1): "axis1", ("mask", 0): "batch", ("mask", 1): "axis1"}


def test_a_fixed_axis_cannot_be_made_dynamic(file):
    with pytest.raises(UsageError, match="declares the size 3"):
        tensorflow_axes(_loaded(file, "signed"), [RequestedAxis("x", 1, "n", 1, None)])


@pytest.mark.parametrize(
    ("name", "expected"),
    [("with_kwargs", 1 - 8 + 3 - 8 + 15), ("with_kwargs_twice", 1 - 8), ("keras_kwargs", 1 - 8), ("foreign_names", 1)],
)
def test_keyword_arguments_are_bound_by_name(file, name, expected):
    subject = _loaded(file, name)
    (output,) = subject.model(subject.examples[0].kwargs)
    np.testing.assert_array_equal(output, np.full(output.shape, expected, np.float32))
    for example in subject.examples[1:]:
        np.testing.assert_array_equal(subject.model(example.kwargs)[0], np.ones(2, np.float32))


@pytest.mark.parametrize(
    ("name", "kind", "message"),
    [
        ("refusing", SourceError, "cannot reshape|Cannot reshape"),
        ("nothing", UsageError, "returns none"),
        ("too_many", UsageError, "hold 1 tensors"),
        ("strange_names", UsageError, "no input 'q'.*first, second"),
    ],
)
def test_what_cannot_be_used_is_refused(file, name, kind, message):
    with pytest.raises(kind, match=message):
        _loaded(file, name)
