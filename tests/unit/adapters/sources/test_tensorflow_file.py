"""Keras files and SavedModel folders as sources: what is loaded, what is refused, and with which words."""

from __future__ import annotations

from types import MappingProxyType

import numpy as np
import pytest

from trueport.adapters.sources.registry import SourceRequest
from trueport.adapters.sources.tensorflow_file import load
from trueport.adapters.sources.tensorflow_setup import import_tensorflow
from trueport.core.errors import UsageError

tf = import_tensorflow()


def _request(path, *, trust=False, inputs=None, shapes=MappingProxyType({})):
    return SourceRequest(str(path), trust, inputs, shapes, 0)


def _dense():
    return tf.keras.Sequential([tf.keras.Input((3,), name="x"), tf.keras.layers.Dense(2, name="d")])


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("keras")
    _dense().save(folder / "ok.keras")
    inputs = tf.keras.Input((3,), name="x")
    doubled = tf.keras.layers.Lambda(lambda x: x * 2)(tf.keras.layers.Dense(2)(inputs))
    tf.keras.Model(inputs, doubled).save(folder / "code.keras")
    return folder


def test_a_keras_file_computes_what_keras_computes(saved):
    subject = load(_request(saved / "ok.keras"))
    (name,) = [i.name for i in subject.model.inputs]
    values = subject.examples[0].kwargs
    assert subject.framework == "tensorflow"
    assert values[name].shape == (2, 3)
    expected = tf.keras.models.load_model(saved / "ok.keras").predict(values[name], verbose=0)
    np.testing.assert_allclose(subject.model(values)[0], expected, rtol=1e-6)


def test_code_in_a_keras_file_is_not_run_unless_trusted(saved):
    with pytest.raises(UsageError, match="--trust-pickle"):
        load(_request(saved / "code.keras"))
    subject = load(_request(saved / "code.keras", trust=True))
    assert subject.model.inputs[0].shape == (None, 3)


@pytest.mark.parametrize("keep", [0.5, 0.0])
def test_a_damaged_keras_file_is_refused(saved, tmp_path, keep):
    content = (saved / "ok.keras").read_bytes()
    (tmp_path / "cut.keras").write_bytes(content[: int(len(content) * keep)])
    with pytest.raises(UsageError, match="zip archive"):
        load(_request(tmp_path / "cut.keras"))


def test_inputs_come_from_an_archive(saved, tmp_path):
    np.savez(tmp_path / "x.npz", x=np.ones((4, 3), np.float32))
    subject = load(_request(saved / "ok.keras", inputs=str(tmp_path / "x.npz")))
    np.testing.assert_array_equal(subject.examples[0].kwargs["x"], np.ones((4, 3), np.float32))


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"y": np.ones((4, 3), np.float32)}, "no input 'y'"),
        ({"x": np.ones((4, 3))}, r"float32\[\?, 3\].*float64\[4, 3\]"),
        ({"x": np.ones((4, 2), np.float32)}, r"float32\[\?, 3\].*float32\[4, 2\]"),
    ],
)
def test_inputs_that_do_not_fit_are_refused(saved, tmp_path, arrays, message):
    np.savez(tmp_path / "x.npz", **arrays)
    with pytest.raises(UsageError, match=message):
        load(_request(saved / "ok.keras", inputs=str(tmp_path / "x.npz")))


def test_a_shape_is_drawn(saved):
    subject = load(_request(saved / "ok.keras", shapes={"x": (5, 3)}))
    assert subject.examples[0].kwargs["x"].shape == (5, 3)
    with pytest.raises(UsageError, match="fit the declared"):
        load(_request(saved / "ok.keras", shapes={"x": (5, 4)}))


def test_a_saved_model_runs_its_signature(tmp_path):
    model = _dense()
    model.export(tmp_path / "m", verbose=False)
    subject = load(_request(tmp_path / "m"))
    values = subject.examples[0].kwargs
    (given,) = values.values()
    np.testing.assert_allclose(subject.model(values)[0], model.predict(given, verbose=0), rtol=1e-6)


def test_the_only_signature_is_taken_and_none_of_two_guessed(tmp_path):
    module = tf.Module()
    module.double = tf.function(lambda x: {"y": x * 2}, input_signature=[tf.TensorSpec((2,), tf.float32, "x")])
    module.triple = tf.function(lambda x: {"y": x * 3}, input_signature=[tf.TensorSpec((2,), tf.float32, "x")])
    tf.saved_model.save(module, str(tmp_path / "one"), signatures={"double": module.double})
    subject = load(_request(tmp_path / "one"))
    values = subject.examples[0].kwargs
    np.testing.assert_array_equal(subject.model(values)[0], values["x"] * 2)
    assert subject.model.outputs[0][0] == "y"
    tf.saved_model.save(module, str(tmp_path / "two"), signatures={"double": module.double, "triple": module.triple})
    with pytest.raises(UsageError, match="it has double, triple"):
        load(_request(tmp_path / "two"))


def test_a_saved_model_without_signature_is_refused(tmp_path):
    module = tf.Module()
    module.v = tf.Variable(1.0)
    tf.saved_model.save(module, str(tmp_path / "m"))
    with pytest.raises(UsageError, match="no signature"):
        load(_request(tmp_path / "m"))


def test_a_saved_model_that_writes_files_is_refused_before_it_is_loaded(tmp_path):
    class Writer(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec((2,), tf.float32)])
        def write(self, x):
            tf.io.write_file(str(tmp_path / "written"), "x")
            return x

    module = Writer()
    tf.saved_model.save(module, str(tmp_path / "m"), signatures=module.write)
    with pytest.raises(UsageError, match="WriteFile"):
        load(_request(tmp_path / "m"))
    assert not (tmp_path / "written").exists()


@pytest.mark.parametrize("content", [None, b"", b"\xff\xff\x00no protobuf"])
def test_a_folder_that_is_no_saved_model_is_refused(tmp_path, content):
    if content is not None:
        (tmp_path / "saved_model.pb").write_bytes(content)
    with pytest.raises(UsageError, match=r"saved_model\.pb"):
        load(_request(tmp_path))


def _cut(name, size):
    def change(folder):
        path = folder / name
        path.write_bytes(path.read_bytes()[:size])

    return change


def _without_variables(folder):
    for path in (folder / "variables").iterdir():
        path.unlink()


def _twice(folder):
    from tensorflow.core.protobuf.saved_model_pb2 import SavedModel

    parsed = SavedModel()
    parsed.ParseFromString((folder / "saved_model.pb").read_bytes())
    parsed.meta_graphs.add().CopyFrom(parsed.meta_graphs[0])
    (folder / "saved_model.pb").write_bytes(parsed.SerializeToString())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_without_variables, "cannot be loaded"),
        (_cut("variables/variables.index", 40), "cannot be loaded"),
        (_cut("variables/variables.data-00000-of-00001", 5), "cannot be loaded"),
        (_cut("saved_model.pb", 300), "cannot be parsed"),
        (_twice, "hold one graph; it holds 2"),
    ],
)
def test_a_damaged_saved_model_is_refused(tmp_path, change, message):
    module = tf.Module()
    module.v = tf.Variable(tf.ones((3, 2)))
    module.f = tf.function(lambda x: {"y": x @ module.v}, input_signature=[tf.TensorSpec((None, 3), tf.float32, "x")])
    tf.saved_model.save(module, str(tmp_path / "m"), signatures=module.f)
    change(tmp_path / "m")
    with pytest.raises(UsageError, match=message):
        load(_request(tmp_path / "m"))
