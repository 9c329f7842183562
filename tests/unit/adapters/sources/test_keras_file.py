"""Keras files that cannot be loaded, or must not be: which words say so, and what is left behind (nothing)."""

from __future__ import annotations

import json
import zipfile
from types import MappingProxyType

import h5py
import pytest

from trueport.adapters.sources import keras_config
from trueport.adapters.sources.keras_file import load_keras
from trueport.adapters.sources.registry import SourceRequest
from trueport.adapters.sources.tensorflow_setup import import_tensorflow
from trueport.core.errors import UsageError

keras = import_tensorflow().keras


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("keras")
    model = keras.Sequential([keras.Input((3,), name="x"), keras.layers.Dense(2, name="d")])
    model.save(path / "ok.keras")
    model.save(path / "ok.h5")
    return path


def _load(path, *, trust=False):
    return load_keras(path, SourceRequest(str(path), trust, None, MappingProxyType({}), 0))


def _archive(source, target, *, drop=(), change=None, **added):
    """Writes an archive anew, without some members, with a changed configuration and with further members."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as new:
        for name in set(old.namelist()) - set(drop):
            content = old.read(name)
            if name == "config.json" and change is not None:
                config = json.loads(content)
                change(config["config"]["layers"][1])
                content = json.dumps(config).encode()
            new.writestr(name, content)
        for name, content in added.items():
            new.writestr(name, content)
    return target


def _custom(layer):
    layer.update(module="nets", class_name="LambdaLike", registered_name="Mine>LambdaLike")


def _custom_function(layer):
    layer["config"]["activation"] = {
        "module": "nets", "class_name": "function", "config": "lambda_safe_mode", "registered_name": "function"
    }  # fmt: skip


def _lookup(layer):
    layer.update(module="keras.layers", class_name="StringLookup", config={"vocabulary": "/etc/hostname"})


def _graph(layer):
    layer.update(module="keras.layers", class_name="TFSMLayer", config={"filepath": "elsewhere"})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_custom, r"uses nets\.LambdaLike: give a Python file"),
        (_custom_function, r"uses nets\.lambda_safe_mode: give a Python file"),
        (_lookup, r"StringLookup.*--trust-pickle"),
        (_graph, r"TFSMLayer.*--trust-pickle"),
    ],
)
def test_the_configuration_tells_what_is_foreign(folder, tmp_path, change, message):
    path = _archive(folder / "ok.keras", tmp_path / "m.keras", change=change)
    with pytest.raises(UsageError, match=message) as caught:
        _load(path)
    assert ("--trust-pickle" in str(caught.value)) == ("--trust-pickle" in message)


def test_a_class_with_lambda_in_its_name_in_the_older_format(folder, tmp_path):
    (tmp_path / "m.h5").write_bytes((folder / "ok.h5").read_bytes())
    with h5py.File(tmp_path / "m.h5", "a") as file:
        config = json.loads(file.attrs["model_config"])
        config["config"]["layers"][1]["class_name"] = "LambdaLike"
        config["config"]["layers"][1].pop("module", None)
        file.attrs["model_config"] = json.dumps(config)
    with pytest.raises(UsageError) as caught:
        _load(tmp_path / "m.h5")
    assert "--trust-pickle" not in str(caught.value)
    assert "LambdaLike" in str(caught.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"drop": ("config.json",)}, "holds no config.json"),
        ({"drop": ("model.weights.h5",)}, "model.weights.h5"),
        ({"drop": ("config.json",), "config.json": "{"}, "cannot be loaded: JSONDecodeError"),
        ({"drop": ("config.json",), "config.json": "[1, 2]"}, "cannot be loaded"),
        ({"drop": ("config.json",), "config.json": "[" * 200_000}, "cannot be loaded"),
    ],
)
def test_a_broken_archive_is_refused(folder, tmp_path, options, message):
    path = _archive(folder / "ok.keras", tmp_path / "m.keras", **options)
    with pytest.raises(UsageError, match=message):
        _load(path)


@pytest.mark.parametrize("name", ["../out", "assets/../../out", "/out"])
def test_member_names_that_lead_out_of_the_archive_are_refused(folder, tmp_path, name):
    path = _archive(folder / "ok.keras", tmp_path / "m.keras", **{name: "x"})
    with pytest.raises(UsageError, match=f"one is named '{name}'"):
        _load(path)


def test_an_archive_that_unpacks_to_much_more_is_refused_unread(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(keras_config, "_MOST_UNPACKED_BYTES", 2**20)
    path = _archive(folder / "ok.keras", tmp_path / "m.keras", **{"assets/zeros": bytes(2**23)})
    with pytest.raises(UsageError, match="unpack to at most 100 times"):
        _load(path)
    assert _load(path, trust=True).model.inputs
    monkeypatch.setattr(keras_config, "_MOST_CONFIG_BYTES", 100)
    with pytest.raises(UsageError, match="at most 100 bytes"):
        _load(path, trust=True)


@pytest.mark.parametrize("kind", ["external", "link"])
def test_weights_from_another_file_are_refused(folder, tmp_path, kind):
    (tmp_path / "secret").write_bytes(bytes(24))
    with h5py.File(tmp_path / "other.h5", "w") as other:
        other["secret"] = [[1.0, 2.0]] * 3
    with zipfile.ZipFile(folder / "ok.keras") as archive:
        archive.extract("model.weights.h5", tmp_path)
    with h5py.File(tmp_path / "model.weights.h5", "a") as file:
        place = "layers/dense/vars/0"
        del file[place]
        if kind == "external":
            file.create_dataset(place, shape=(3, 2), dtype="f4", external=[(str(tmp_path / "secret"), 0, 24)])
        else:
            file[place] = h5py.ExternalLink(str(tmp_path / "other.h5"), "secret")
    weights = {"model.weights.h5": (tmp_path / "model.weights.h5").read_bytes()}
    path = _archive(folder / "ok.keras", tmp_path / "m.keras", drop=tuple(weights), **weights)
    with pytest.raises(UsageError, match="Not allowed"):
        _load(path)


@pytest.mark.parametrize("content", [b"", b"no file of HDF5"])
def test_a_damaged_older_file_is_refused(tmp_path, content):
    (tmp_path / "m.h5").write_bytes(content)
    with pytest.raises(UsageError, match="cannot be loaded"):
        _load(tmp_path / "m.h5")
