"""The identity of a finding: literal digests, because a change of them orphans every stored baseline."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from trueport.core.signature import VERSION, signature
from trueport.core.taxonomy import Kind, Stage, Symptom

FULL = {
    "stage": Stage.OPTIMIZATION, "symptom": Symptom.WRONG_MODEL, "kind": Kind.VALUE, "converter": "torch-dynamo",
    "operators": ("Mul", "Add"), "dtypes": ("float32",),
}  # fmt: skip
CRASH = {
    "stage": Stage.NODE_CONVERSION, "symptom": Symptom.CRASH, "kind": Kind.EXCEPTION, "converter": "torch-script",
    "exception": "torch.onnx.errors.UnsupportedOperatorError", "operators": ("aten::foo",), "dtypes": (),
}  # fmt: skip
BARE = {"stage": None, "symptom": None, "kind": Kind.VALUE, "converter": None}

LITERAL = [
    (BARE, "d1c1f1bda08e568dc8a07cf0f1300f33bba03b7f0b7a3c3f5d947aeb8ffaffd6"),
    (FULL, "c73f02ac80267ccb476cbf7018d5044cf91c96fa5ccbfab8ac8c933a13240f45"),
    (CRASH, "0c5323eb9e01f5629de8226850aab1047b5c65c89598b45ddc42e4fc55329de7"),
    ({**FULL, "converter": "überträger"}, "a4f45a501ac6268d97aa2f194534469d7848f9014bfada2f246bc40b076026be"),
]


@pytest.mark.parametrize(("fields", "digest"), LITERAL)
def test_digests_are_stable(fields, digest):
    assert signature(**fields) == digest, "raise core.signature.VERSION if what identifies a finding must change"


def test_version_is_part_of_it(monkeypatch):
    assert VERSION == 1
    before = signature(**FULL)
    monkeypatch.setattr("trueport.core.signature.VERSION", 2)
    assert signature(**FULL) != before


@pytest.mark.parametrize(
    "change",
    [
        {"stage": Stage.EXPORT},
        {"symptom": Symptom.CRASH},
        {"kind": Kind.SHAPE},
        {"converter": "torch-script"},
        {"converter": None},
        {"exception": "ValueError"},
        {"operators": ("Add", "Mul")},
        {"operators": ("MulAdd",)},
        {"operators": ("Mul",)},
        {"dtypes": ("float16",)},
        {"dtypes": ()},
        {"operators": (), "dtypes": ("Mul", "Add")},
    ],
)
def test_every_field_counts(change):
    assert signature(**{**FULL, **change}) != signature(**FULL)


def test_neighbouring_fields_do_not_run_into_each_other():
    assert signature(**{**BARE, "operators": ("a,b",)}) != signature(**{**BARE, "operators": ("a", "b")})
    assert signature(**{**BARE, "converter": "x", "exception": ""}) != signature(
        **{**BARE, "converter": "", "exception": "x"}
    )
    assert signature(**{**BARE, "converter": None}) != signature(**{**BARE, "converter": "None"})


def test_a_list_is_as_good_as_a_tuple():
    assert signature(**{**FULL, "operators": ["Mul", "Add"], "dtypes": ["float32"]}) == signature(**FULL)


def test_it_is_a_whole_sha256():
    assert re.fullmatch("[0-9a-f]{64}", signature(**FULL))


def test_the_hash_seed_does_not_matter():
    program = (
        "from trueport.core.signature import signature; from trueport.core.taxonomy import *;"
        "print(signature(stage=Stage.EXPORT, symptom=None, kind=Kind.VALUE, converter='c', operators=['a']))"
    )
    told = {
        subprocess.run(
            [sys.executable, "-c", program], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("0", "1")
    }
    assert len(told) == 1
